//! Which class keys and values go to, from the root of a tree to its leaves.

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result};

/// A class, by its name or by its place among the volume's classes. As JSON: `"fastest"`, `"slowest"`, or a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ClassChoice {
    /// The fastest class.
    Fastest,
    /// The slowest class.
    Slowest,
    /// The class of that name.
    Named(String),
}

impl From<String> for ClassChoice {
    fn from(name: String) -> ClassChoice {
        match name.as_str() {
            "fastest" => ClassChoice::Fastest,
            "slowest" => ClassChoice::Slowest,
            _ => ClassChoice::Named(name),
        }
    }
}

impl From<ClassChoice> for String {
    fn from(choice: ClassChoice) -> String {
        match choice {
            ClassChoice::Fastest => "fastest".to_owned(),
            ClassChoice::Slowest => "slowest".to_owned(),
            ClassChoice::Named(name) => name,
        }
    }
}

/// Where keys and values of one level go. A class that is full is passed over for the next by speed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelClasses {
    /// Key files.
    pub keys: ClassChoice,
    /// Values that are kept apart from their keys. At the root they are in the log.
    pub values: ClassChoice,
}

/// Where a store's keys and values go. As JSON, the name of a template or
/// `{"root": {"keys": .., "values": ..}, "leaf": {"keys": .., "values": ..}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PolicyText", into = "PolicyText")]
pub struct MediaPolicy {
    /// What was written lately.
    pub root: LevelClasses,
    /// All the rest.
    pub leaf: LevelClasses,
}

/// How a policy is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum PolicyText {
    Template(PolicyTemplate),
    Custom { root: LevelClasses, leaf: LevelClasses },
}

/// A policy with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyTemplate {
    /// All on the fastest class.
    StagingOnly,
    /// Keys on the fastest class, values of leaves on the slowest.
    StagingMaxCapacity,
    /// Leaves on the slowest class, keys and values.
    StagingMinCapacity,
    /// All on the slowest class (but the log).
    CapacityOnly,
}

impl From<PolicyTemplate> for MediaPolicy {
    fn from(template: PolicyTemplate) -> MediaPolicy {
        use ClassChoice::{Fastest, Slowest};
        let level = |keys, values| LevelClasses { keys, values };
        let (root, leaf) = match template {
            PolicyTemplate::StagingOnly => (level(Fastest, Fastest), level(Fastest, Fastest)),
            PolicyTemplate::StagingMaxCapacity => (level(Fastest, Fastest), level(Fastest, Slowest)),
            PolicyTemplate::StagingMinCapacity => (level(Fastest, Fastest), level(Slowest, Slowest)),
            PolicyTemplate::CapacityOnly => (level(Slowest, Slowest), level(Slowest, Slowest)),
        };
        MediaPolicy { root, leaf }
    }
}

impl From<PolicyText> for MediaPolicy {
    fn from(text: PolicyText) -> MediaPolicy {
        match text {
            PolicyText::Template(template) => template.into(),
            PolicyText::Custom { root, leaf } => MediaPolicy { root, leaf },
        }
    }
}

impl From<MediaPolicy> for PolicyText {
    fn from(policy: MediaPolicy) -> PolicyText {
        let templates = [
            PolicyTemplate::StagingOnly,
            PolicyTemplate::StagingMaxCapacity,
            PolicyTemplate::StagingMinCapacity,
            PolicyTemplate::CapacityOnly,
        ];
        match templates.into_iter().find(|template| MediaPolicy::from(*template) == policy) {
            Some(template) => PolicyText::Template(template),
            None => PolicyText::Custom { root: policy.root, leaf: policy.leaf },
        }
    }
}

impl Default for MediaPolicy {
    /// `staging_max_capacity`.
    fn default() -> MediaPolicy {
        PolicyTemplate::StagingMaxCapacity.into()
    }
}

/// A policy with the names of classes that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) root_keys: String,
    pub(crate) leaf_keys: String,
    pub(crate) leaf_values: String,
    /// Whether values leave the log's segments on their way to the leaves.
    pub(crate) moves_values: bool,
}

impl MediaPolicy {
    /// What the policy says in a volume of `classes`, fastest first, with the log on `log_class`.
    ///
    /// # Errors
    /// `NotFound` if there is no class of a name.
    pub(crate) fn resolve(&self, classes: &[String], log_class: &str) -> Result<Placement> {
        let resolve = |choice: &ClassChoice| {
            let class = match choice {
                ClassChoice::Fastest => classes.first(),
                ClassChoice::Slowest => classes.last(),
                ClassChoice::Named(name) => classes.iter().find(|class| *class == name),
            };
            class.cloned().ok_or_else(|| {
                let choice = String::from(choice.clone());
                Error::new(
                    ErrorKind::NotFound,
                    format!("a policy names class {choice:?}, which the volume has not"),
                )
            })
        };
        let leaf_values = resolve(&self.leaf.values)?;
        Ok(Placement {
            root_keys: resolve(&self.root.keys)?,
            leaf_keys: resolve(&self.leaf.keys)?,
            moves_values: leaf_values != log_class,
            leaf_values,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(policy: &MediaPolicy) -> Placement {
        let classes = ["nvme", "sata", "disk"].map(str::to_owned);
        policy.resolve(&classes, "nvme").unwrap()
    }

    #[test]
    fn templates_are_written_by_name_and_mean_what_they_say() {
        let policy: MediaPolicy = serde_json::from_str(r#""staging_min_capacity""#).unwrap();
        assert_eq!(serde_json::to_string(&policy).unwrap(), r#""staging_min_capacity""#);
        let placement = resolve(&policy);
        assert_eq!((&*placement.root_keys, &*placement.leaf_keys), ("nvme", "disk"));
        assert_eq!((&*placement.leaf_values, placement.moves_values), ("disk", true));
        let placement = resolve(&PolicyTemplate::StagingOnly.into());
        assert_eq!((&*placement.leaf_values, placement.moves_values), ("nvme", false));
        let placement = resolve(&MediaPolicy::default());
        assert_eq!((&*placement.leaf_keys, &*placement.leaf_values), ("nvme", "disk"));
        assert!(resolve(&PolicyTemplate::CapacityOnly.into()).moves_values);
    }

    #[test]
    fn a_policy_of_ones_own_names_classes() {
        let text =
            r#"{"root":{"keys":"fastest","values":"fastest"},"leaf":{"keys":"sata","values":"slowest"}}"#;
        let policy: MediaPolicy = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&policy).unwrap(), text);
        assert_eq!(resolve(&policy).leaf_keys, "sata");
        assert_eq!(policy.resolve(&["disk".to_owned()], "disk").unwrap_err().kind(), ErrorKind::NotFound);
        assert!(serde_json::from_str::<MediaPolicy>(r#""staging_never""#).is_err());
    }

    #[test]
    fn with_one_class_values_stay() {
        let placement = MediaPolicy::default().resolve(&["disk".to_owned()], "disk").unwrap();
        assert!(!placement.moves_values);
    }
}
