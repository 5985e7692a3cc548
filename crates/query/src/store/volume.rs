//! Objects of a tiered volume. An object's name is its path, `/` separates folders.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use tanada_io::{Device, Executors, Method};
use tanada_volume::directory::Directory;
use tanada_volume::{Attributes, Object};

use super::medium::{Entry, Identity, Medium, Opened, Source, Target};
use crate::{Error, ErrorKind, Result};

/// The objects of a volume. They are read through their devices, so depth, counters and placement are the volume's.
#[derive(Debug, Clone)]
pub struct VolumeObjects {
    directory: Arc<Directory>,
    executors: Arc<Executors>,
}

impl VolumeObjects {
    /// The objects of the volume in `directory`.
    pub fn new(directory: Arc<Directory>, executors: Arc<Executors>) -> VolumeObjects {
        VolumeObjects { directory, executors }
    }

    /// Whether there is such an object.
    pub fn has(&self, name: &str) -> bool {
        self.directory.volume().open_object(name).is_ok()
    }

    /// Uppermost folders below which objects lie that end with `.extension`; the empty one stands for objects in none.
    pub fn folders_with(&self, extension: &str) -> Vec<String> {
        let names = self.directory.volume().objects().into_iter().map(|object| object.name());
        let suffix = format!(".{extension}");
        let mut folders: Vec<String> = names
            .filter(|name| name.to_ascii_lowercase().ends_with(&suffix))
            .map(|name| name.split_once('/').map_or(String::new(), |(folder, _)| folder.to_owned()))
            .collect();
        folders.sort_unstable();
        folders.dedup();
        folders
    }
}

impl fmt::Display for VolumeObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "objects of the volume {}", self.directory.path().display())
    }
}

impl Medium for VolumeObjects {
    fn path_of(&self, name: &str) -> String {
        name.to_owned()
    }

    fn shown(&self, name: &str) -> String {
        format!("{name} in the volume {}", self.directory.path().display())
    }

    fn open(&self, name: &str, _: Method) -> Result<Opened> {
        let object = self.directory.volume().open_object(name)?;
        let identity = Identity::of_object(&object);
        let device = object.device();
        Ok(Opened { device, path: PathBuf::from(name), identity, source: Source::Object(object) })
    }

    fn entries(&self, folder: &str) -> Result<Vec<Entry>> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut entries: BTreeMap<String, bool> = BTreeMap::new();
        for object in self.directory.volume().objects() {
            let name = object.name();
            let Some(rest) = name.strip_prefix(&prefix) else { continue };
            match rest.split_once('/') {
                Some((inner, _)) => entries.insert(inner.to_owned(), true),
                None => entries.insert(rest.to_owned(), false),
            };
        }
        if entries.is_empty() && !folder.is_empty() {
            let message = format!("there is no folder {}", self.shown(folder));
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        Ok(entries.into_iter().map(|(name, is_folder)| Entry { name, is_folder }).collect())
    }

    fn is_folder(&self, name: &str) -> bool {
        let prefix = format!("{name}/");
        self.directory.volume().objects().iter().any(|object| object.name().starts_with(&prefix))
    }

    fn create<'a>(&'a self, name: &'a str, replaces: bool) -> BoxFuture<'a, Result<Box<dyn Target>>> {
        async move {
            if self.has(name) && !replaces {
                return Err(self.exists(name));
            }
            static NUMBER: AtomicU64 = AtomicU64::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let temporary = format!("{name}.{}-{number}.tanada-tmp", std::process::id());
            let object = self.directory.volume().create_object(&temporary, &Attributes::default())?;
            let device = object.device();
            let target = ObjectTarget {
                objects: self.clone(),
                object,
                device,
                temporary: Some(temporary),
                name: name.to_owned(),
                replaces,
            };
            Ok(Box::new(target) as Box<dyn Target>)
        }
        .boxed()
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<()>> {
        async move { Ok(self.directory.volume().delete(name).await?) }.boxed()
    }
}

impl VolumeObjects {
    fn exists(&self, name: &str) -> Error {
        let message = format!(
            "there is an object {} already; name another one, or add OPTIONS (overwrite true) to replace it",
            self.shown(name)
        );
        Error::new(ErrorKind::InvalidInput, message)
    }
}

#[derive(Debug)]
struct ObjectTarget {
    objects: VolumeObjects,
    object: Object,
    device: Device,
    /// The name of what is not committed.
    temporary: Option<String>,
    name: String,
    replaces: bool,
}

impl Target for ObjectTarget {
    fn device(&self) -> &Device {
        &self.device
    }

    fn commit(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        async move {
            let Some(temporary) = self.temporary.clone() else { return Ok(()) };
            let volume = self.objects.directory.volume();
            self.object.resize(bytes).await?;
            self.object.sync().await?;
            match (self.objects.has(&self.name), self.replaces) {
                (true, false) => return Err(self.objects.exists(&self.name)),
                (true, true) => volume.delete(&self.name).await?,
                (false, _) => {}
            }
            volume.rename(&temporary, &self.name)?;
            self.temporary = None;
            Ok(volume.sync().await?)
        }
        .boxed()
    }
}

impl Drop for ObjectTarget {
    fn drop(&mut self) {
        let Some(temporary) = self.temporary.take() else { return };
        let directory = Arc::clone(&self.objects.directory);
        // There is nobody to be told.
        let removed =
            self.objects.executors.spawn(move || async move { directory.volume().delete(&temporary).await });
        removed.detach();
    }
}
