//! Which class keys and values go to, from the root of a tree to its leaves.

use serde::{Deserialize, Serialize};

/// A class, by its name or by its place among the volume's classes. As JSON: `"fastest"`, `"slowest"`, `"log"`, or a
/// name.
///
/// ```
/// use tanada_kv::ClassChoice;
///
/// assert_eq!(ClassChoice::from("fastest".to_owned()), ClassChoice::Fastest);
/// assert_eq!(ClassChoice::from("flash".to_owned()), ClassChoice::Named("flash".to_owned()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ClassChoice {
    /// The fastest class.
    Fastest,
    /// The slowest class.
    Slowest,
    /// The class of the log: values stay in its segments.
    Log,
    /// The class of that name.
    Named(String),
}

impl From<String> for ClassChoice {
    fn from(name: String) -> ClassChoice {
        match name.as_str() {
            "fastest" => ClassChoice::Fastest,
            "slowest" => ClassChoice::Slowest,
            "log" => ClassChoice::Log,
            _ => ClassChoice::Named(name),
        }
    }
}

impl From<ClassChoice> for String {
    fn from(choice: ClassChoice) -> String {
        match choice {
            ClassChoice::Fastest => "fastest".to_owned(),
            ClassChoice::Slowest => "slowest".to_owned(),
            ClassChoice::Log => "log".to_owned(),
            ClassChoice::Named(name) => name,
        }
    }
}

/// The classes of keys and values of one level. A full class is skipped for the next by speed.
///
/// ```
/// use tanada_kv::{ClassChoice, LevelClasses, MediaPolicy};
///
/// let leaf = LevelClasses { keys: ClassChoice::Fastest, values: ClassChoice::Slowest };
/// assert_eq!(MediaPolicy { leaf: leaf.clone(), ..MediaPolicy::default() }.leaf, leaf);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelClasses {
    /// Key files.
    pub keys: ClassChoice,
    /// Values that are kept apart from their keys. Those of the root are in the log and nowhere else: a policy that
    /// wants them on another class than the log's is refused.
    pub values: ClassChoice,
}

/// The classes of a store's keys and values. As JSON, the name of a template or
/// `{"root": {"keys": .., "values": ..}, "leaf": {"keys": .., "values": ..}}`.
///
/// ```
/// use tanada_kv::{MediaPolicy, PolicyTemplate};
///
/// assert_eq!(MediaPolicy::default(), PolicyTemplate::StagingMaxCapacity.into());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PolicyText", into = "PolicyText")]
pub struct MediaPolicy {
    /// Recent writes: log and root.
    pub root: LevelClasses,
    /// All the rest.
    pub leaf: LevelClasses,
}

/// The serialized form of a policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a policy is staging_only, staging_max_capacity, staging_min_capacity or capacity_only, or {\"root\": {\"keys\": CLASS, \"values\": \"log\"}, \"leaf\": {\"keys\": CLASS, \"values\": CLASS}}, CLASS being fastest, slowest, log or a name"
)]
enum PolicyText {
    Template(PolicyTemplate),
    Custom(CustomPolicy),
}

/// A policy level by level.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CustomPolicy {
    root: LevelClasses,
    leaf: LevelClasses,
}

/// A policy with a name.
///
/// ```
/// use tanada_kv::{MediaPolicy, PolicyTemplate};
///
/// let policy: MediaPolicy = serde_json::from_str("\"staging_only\"")?;
/// assert_eq!(policy, PolicyTemplate::StagingOnly.into());
/// # Ok::<(), serde_json::Error>(())
/// ```
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
        use ClassChoice::{Fastest, Log, Slowest};
        let level = |keys, values| LevelClasses { keys, values };
        let (root, leaf) = match template {
            PolicyTemplate::StagingOnly => (level(Fastest, Log), level(Fastest, Fastest)),
            PolicyTemplate::StagingMaxCapacity => (level(Fastest, Log), level(Fastest, Slowest)),
            PolicyTemplate::StagingMinCapacity => (level(Fastest, Log), level(Slowest, Slowest)),
            PolicyTemplate::CapacityOnly => (level(Slowest, Log), level(Slowest, Slowest)),
        };
        MediaPolicy { root, leaf }
    }
}

impl From<PolicyText> for MediaPolicy {
    fn from(text: PolicyText) -> MediaPolicy {
        match text {
            PolicyText::Template(template) => template.into(),
            PolicyText::Custom(CustomPolicy { root, leaf }) => MediaPolicy { root, leaf },
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
            None => PolicyText::Custom(CustomPolicy { root: policy.root, leaf: policy.leaf }),
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

/// A class of the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfferedClass {
    pub(crate) name: String,
    /// Nothing new goes to one that is drained, or whose device is missing.
    pub(crate) takes_objects: bool,
}

impl ClassChoice {
    /// The class that is meant, of `classes`, fastest first. In place of one that takes no objects it is the next
    /// slower one that does, or a faster one; in place of one that is there no more, the slowest. `None` if there is no
    /// class.
    pub(crate) fn resolve(&self, classes: &[OfferedClass]) -> Option<String> {
        let any_takes = classes.iter().any(|class| class.takes_objects);
        let takes = |class: &&OfferedClass| class.takes_objects || !any_takes;
        let (faster, slower) = match self {
            // The caller knows the class of the log.
            ClassChoice::Fastest | ClassChoice::Log => classes.split_at(0),
            ClassChoice::Slowest => classes.split_at(classes.len()),
            ClassChoice::Named(name) => {
                let index = classes.iter().position(|class| class.name == *name);
                classes.split_at(index.unwrap_or(classes.len()))
            }
        };
        let class = slower.iter().find(takes).or_else(|| faster.iter().rev().find(takes));
        class.map(|class| class.name.clone())
    }
}

impl MediaPolicy {
    /// The names of classes in it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let choices = [&self.root.keys, &self.root.values, &self.leaf.keys, &self.leaf.values];
        choices.into_iter().filter_map(|choice| match choice {
            ClassChoice::Named(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Resolves the policy in a volume of `classes`, fastest first, with the log on `log_class`; `None` without
    /// classes.
    pub(crate) fn resolve(&self, classes: &[OfferedClass], log_class: &ClassChoice) -> Option<Placement> {
        let resolve = |choice: &ClassChoice| match choice {
            ClassChoice::Log => log_class.resolve(classes),
            other => other.resolve(classes),
        };
        let leaf_values = resolve(&self.leaf.values)?;
        Some(Placement {
            root_keys: resolve(&self.root.keys)?,
            leaf_keys: resolve(&self.leaf.keys)?,
            moves_values: leaf_values != log_class.resolve(classes)?,
            leaf_values,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(classes: &[(&str, bool)]) -> Vec<OfferedClass> {
        let offered = classes.iter().map(|(name, takes_objects)| (name.to_string(), *takes_objects));
        offered.map(|(name, takes_objects)| OfferedClass { name, takes_objects }).collect()
    }

    fn resolve(policy: &MediaPolicy) -> Placement {
        let classes = offered(&[("nvme", true), ("sata", true), ("disk", true)]);
        policy.resolve(&classes, &ClassChoice::Fastest).unwrap()
    }

    #[test]
    fn policy_templates_are_serialized_by_name() {
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
        assert_eq!(policy.names().collect::<Vec<_>>(), ["sata"]);
        assert!(serde_json::from_str::<MediaPolicy>(r#""staging_never""#).is_err());
    }

    #[test]
    fn with_one_class_values_stay() {
        let placement = MediaPolicy::default().resolve(&offered(&[("disk", true)]), &ClassChoice::Fastest);
        assert!(!placement.unwrap().moves_values);
        assert_eq!(MediaPolicy::default().resolve(&[], &ClassChoice::Fastest), None);
    }

    #[test]
    fn a_class_that_takes_nothing_is_passed_over() {
        let resolve = |choice: &str, classes: &[(&str, bool)]| {
            ClassChoice::from(choice.to_owned()).resolve(&offered(classes)).unwrap()
        };
        let without_fastest = [("nvme", false), ("sata", true), ("disk", true)];
        assert_eq!(resolve("fastest", &without_fastest), "sata");
        assert_eq!(resolve("nvme", &without_fastest), "sata");
        let without_slowest = [("nvme", true), ("sata", true), ("disk", false)];
        assert_eq!(resolve("slowest", &without_slowest), "sata");
        assert_eq!(resolve("disk", &without_slowest), "sata");
        assert_eq!(resolve("gone", &without_slowest), "sata");
        assert_eq!(resolve("nvme", &[("nvme", false)]), "nvme");
    }
}
