//! A class as it is written on the command line: `NAME=PATH[:PATH]...[,size=SIZE][,model=MODEL][,stripe=SIZE]`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use tanada_base::ByteSize;
use tanada_io::ModelSpec;
use tanada_volume::directory::ClassConfig;

use crate::failure::{Failure, Outcome};

/// What is said about a class.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassSpec {
    /// Its name.
    pub name: String,
    paths: Vec<PathBuf>,
    size: Option<ByteSize>,
    stripe: Option<ByteSize>,
    model: Option<String>,
}

/// How a class is written.
pub const FORM: &str = "NAME=PATH[:PATH]...[,size=SIZE][,model=MODEL][,stripe=SIZE]";

impl FromStr for ClassSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<ClassSpec, String> {
        let (name, rest) = text.split_once('=').ok_or_else(|| format!("write a class as {FORM}"))?;
        if name.is_empty() || name.contains(['/', ',']) {
            return Err(format!("a class is named before the '=': {FORM}"));
        }
        let [mut paths, mut size, mut stripe, mut model] = [const { None::<String> }; 4];
        // What follows a comma and is no key of ours goes on with what is before it: models have commas of their own.
        let mut current = &mut paths;
        for part in rest.split(',') {
            let part = match part.split_once('=') {
                Some(("size", value)) => {
                    current = &mut size;
                    value
                }
                Some(("stripe", value)) => {
                    current = &mut stripe;
                    value
                }
                Some(("model", value)) => {
                    current = &mut model;
                    value
                }
                _ => part,
            };
            *current = Some(match current.take() {
                Some(before) => format!("{before},{part}"),
                None => part.to_owned(),
            });
        }
        let bytes = |key: &str, text: Option<String>| {
            let parsed = text.map(|text| text.parse::<ByteSize>().map_err(|error| format!("{key}: {error}")));
            parsed.transpose()
        };
        if let Some(model) = &model {
            model.parse::<ModelSpec>().map_err(|error| error.to_string())?;
        }
        let paths: Vec<PathBuf> = paths.unwrap_or_default().split(':').map(PathBuf::from).collect();
        if paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(format!("class {name} needs a folder, file or block device: {FORM}"));
        }
        let (size, stripe) = (bytes("size", size)?, bytes("stripe", stripe)?);
        Ok(ClassSpec { name: name.to_owned(), paths, size, stripe, model })
    }
}

impl ClassSpec {
    /// The class for the volume in `volume`: paths that lie there are kept relative to it, so that the folder can be
    /// moved.
    pub fn config(&self, volume: &Path) -> Outcome<ClassConfig> {
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
        };
        let folder = absolute(volume)?;
        let mut paths = Vec::new();
        for path in &self.paths {
            let path = absolute(path)?;
            if self.size.is_none() && (path.is_dir() || !path.exists()) {
                let message = format!(
                    "class {}: {} has no size of its own; say how much of it to use, for instance size=100GiB",
                    self.name,
                    path.display()
                );
                return Err(Failure::usage(message));
            }
            paths.push(path.strip_prefix(&folder).map(Path::to_owned).unwrap_or(path));
        }
        let mut config = ClassConfig::new(&self.name, paths, self.size.map(ByteSize::bytes));
        config.model.clone_from(&self.model);
        if let Some(stripe) = self.stripe {
            config.segment_bytes = stripe.bytes();
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_paths_and_what_follows_them() {
        let spec: ClassSpec =
            "cold=/mnt/a:/mnt/b,size=2GiB,model=8xhdd-7200:span=0.5,write-cache=off,stripe=64KiB"
                .parse()
                .unwrap();
        assert_eq!((spec.name.as_str(), spec.paths.len()), ("cold", 2));
        assert_eq!(spec.size.map(ByteSize::bytes), Some(2 << 30));
        assert_eq!(spec.stripe.map(ByteSize::bytes), Some(64 << 10));
        assert_eq!(spec.model.as_deref(), Some("8xhdd-7200:span=0.5,write-cache=off"));
        let config = spec.config(Path::new("/mnt")).unwrap();
        assert_eq!(config.paths, [Path::new("a"), Path::new("b")]);
    }

    #[test]
    fn invalid_class_specifications_name_the_fault() {
        for (text, expected) in [
            ("cold", "NAME=PATH"),
            ("=x", "NAME=PATH"),
            ("cold=", "needs a folder"),
            ("cold=/a:,size=1", "needs a folder"),
            ("cold=/a,size=much", "size"),
            ("cold=/a,model=tape", "hdd-7200"),
        ] {
            let error = text.parse::<ClassSpec>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = "cold=/,stripe=4KiB".parse::<ClassSpec>().unwrap().config(Path::new("/v")).unwrap_err();
        assert!(error.to_string().contains("size="), "{error}");
    }
}
