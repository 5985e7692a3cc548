//! `tanada kv create`, `ls`, `settings`, `policy`, `checkpoint`, `drop` and `destroy`: databases and stores as wholes.

use clap::Args;
use serde::Serialize;
use tanada_kv::{Database, DatabaseOverrides, DatabaseSettings, MediaPolicy, OpenOptions, StoreSettings};
use tanada_report::Table;

use super::settings::{self, Named};
use super::{Place, closing};
use crate::failure::{Failure, Outcome};
use crate::output::{OutputArguments, say, size};

/// Arguments of `tanada kv create`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada kv vol --store sessions create --settings '{\"time_to_live_s\": 3600, \"compression\": \"lz4\"}'
  tanada kv vol --store index create --policy staging_only
  tanada kv vol --database shop create --database-settings shop.json

What is left out of settings has its default. docs/kv-tuning.md has their names.")]
pub struct CreateArguments {
    /// Settings of the store: JSON, or a file with it
    #[arg(long, value_name = "JSON|FILE")]
    settings: Option<String>,
    /// Which classes keys and values go to: staging_max_capacity, staging_min_capacity, staging_only, capacity_only, or
    /// JSON
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Settings of the database, if there is none yet: JSON, or a file with it
    #[arg(long, value_name = "JSON|FILE")]
    database_settings: Option<String>,
}

pub(super) async fn create(place: &Place, arguments: CreateArguments) -> Outcome {
    let mut of_store: StoreSettings = match &arguments.settings {
        Some(text) => settings::parsed(text, "settings of a store")?,
        None => StoreSettings::default(),
    };
    if let Some(text) = &arguments.policy {
        of_store.policy = settings::policy(text)?;
    }
    let of_database: Option<DatabaseSettings> = match &arguments.database_settings {
        Some(text) => Some(settings::parsed(text, "settings of a database")?),
        None => None,
    };
    let is_there = place.is_there();
    if is_there && of_database.is_some() {
        return Err(Failure::failed(format!(
            "there is a database '{}' already: change its settings with tanada kv DIR settings",
            place.database
        )));
    }
    let database = place.write_or_new(&of_database.unwrap_or_default()).await?;
    let created = async { Ok(database.create_store(&place.store, &of_store).await.map(drop)?) };
    let created = created.await;
    let created = closing(&database, created).await;
    place.with_all_or_nothing(is_there, created).await
}

/// Arguments of `tanada kv ls`.
#[derive(Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    output: OutputArguments,
}

/// A database of the volume.
#[derive(Debug, Serialize)]
struct ListedDatabase {
    name: String,
    stores: Vec<ListedStore>,
    /// Why it cannot be opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A store of it.
#[derive(Debug, Serialize)]
struct ListedStore {
    name: String,
    policy: MediaPolicy,
    versions: u64,
    bytes: u64,
}

/// Lists all databases, or the one that is named.
pub(super) async fn list(place: &Place, is_named: bool, arguments: ListArguments) -> Outcome {
    let mut names = Database::names(place.volume());
    if is_named {
        names.retain(|name| *name == place.database);
        if names.is_empty() {
            return Err(place.no_database());
        }
    }
    let mut databases = Vec::new();
    for name in names {
        databases.push(match listed(place, &name).await {
            Ok(stores) => ListedDatabase { name, stores, error: None },
            // The others are there all the same.
            Err(error) => ListedDatabase { name, stores: Vec::new(), error: Some(error.to_string()) },
        });
    }
    arguments.output.print(&databases, |databases| {
        let mut table = Table::new(&["database", "store", "policy", "versions", "keys and values"]);
        for database in databases {
            for store in &database.stores {
                let policy = match serde_json::to_value(&store.policy) {
                    Ok(serde_json::Value::String(template)) => template,
                    _ => "its own".to_owned(),
                };
                let (versions, bytes) = (store.versions.to_string(), size(store.bytes));
                table.add(vec![database.name.clone(), store.name.clone(), policy, versions, bytes]);
            }
            if database.stores.is_empty() {
                let why = if database.error.is_some() { "(cannot be opened)" } else { "(no stores)" };
                table.add(vec![database.name.clone(), why.into(), "".into(), "".into(), "".into()]);
            }
        }
        if databases.is_empty() {
            return "there are no databases\n".to_owned();
        }
        let errors = databases.iter().filter_map(|database| Some((&database.name, database.error.as_ref()?)));
        errors.fold(table.to_string(), |text, (name, error)| text + &format!("{name}: {error}\n"))
    })?;
    let unopened: Vec<&str> = databases
        .iter()
        .filter(|database| database.error.is_some())
        .map(|database| database.name.as_str())
        .collect();
    if !unopened.is_empty() {
        return Err(Failure::failed(format!("cannot be opened: {}", unopened.join(", "))));
    }
    Ok(())
}

async fn listed(place: &Place, name: &str) -> tanada_kv::Result<Vec<ListedStore>> {
    let options = place.options(true);
    let database = Database::open(place.volume(), name, &options, place.environment()).await?;
    let stores = database.statistics().stores.into_iter().map(|store| {
        let policy = database.open_store(&store.name)?.settings().policy;
        let bytes = store.key_bytes + store.inline_bytes + store.value_bytes + store.logged_bytes;
        let versions = store.versions + store.logged_versions;
        Ok(ListedStore { name: store.name, policy, versions, bytes })
    });
    let stores = stores.collect();
    database.close().await?;
    stores
}

/// Arguments of `tanada kv settings`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada kv vol settings
  tanada kv vol settings '{\"memory_bytes\": 1073741824, \"fast_class_bytes\": 10737418240}'
  tanada kv vol settings '{\"fast_class_bytes\": null}'
  tanada kv vol settings --set fast_class_bytes=10GiB --set durability=sync --set memory_bytes=1GiB
  tanada kv vol --store sessions settings --set time_to_live_s=3600 --set compression=zstd
  tanada kv vol --store sessions settings --set time_to_live_s=null

What is not named stays as it is; docs/kv-tuning.md has the names. With --set a name says whether it is the \
database's or the store's; what is written from then on follows those of a store. Changes of one command are \
all made, or none.")]
pub struct SettingsArguments {
    /// Settings of the database that are to be others, for good: JSON, or a file with it
    #[arg(value_name = "JSON|FILE")]
    settings: Option<String>,
    /// A setting of the database or the store that is to be another, for good: JSON, a size or a word; again for others
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "settings")]
    set: Vec<String>,
}

impl SettingsArguments {
    /// Whether anything is to be changed.
    pub(super) fn changes(&self) -> bool {
        self.settings.is_some() || !self.set.is_empty()
    }
}

/// All settings of a database.
#[derive(Debug, Serialize)]
struct AllSettings {
    database: DatabaseSettings,
    stores: std::collections::BTreeMap<String, StoreSettings>,
}

pub(super) async fn settings(place: &Place, arguments: SettingsArguments) -> Outcome {
    if let Some(text) = &arguments.settings {
        return change(place, settings::parsed(text, "settings of a database")?).await;
    }
    if !arguments.set.is_empty() {
        return set(place, &arguments.set).await;
    }
    let database = place.read().await?;
    place.named_store(&database)?;
    let shown = database.stores().into_iter().filter(|name| !place.is_store_named || *name == place.store);
    let stores = shown.map(|name| {
        let settings = database.open_store(&name)?.settings();
        Ok((name, settings))
    });
    let stores = stores.collect::<Outcome<_>>();
    let all = AllSettings { stores: stores?, database: database.settings() };
    closing(&database, Ok(())).await?;
    json(&all)
}

/// Changes settings by their names, of the database or of the store.
async fn set(place: &Place, named: &[String]) -> Outcome {
    match settings::named(named)? {
        Named::Database(settings) => change(place, settings).await,
        Named::Store(settings) => {
            let database = place.write().await?;
            let set = async { Ok(place.store(&database)?.set_settings(&settings).await?) };
            let set = set.await;
            closing(&database, set).await
        }
    }
}

/// Changes settings of the database.
async fn change(place: &Place, settings: DatabaseOverrides) -> Outcome {
    let options = OpenOptions { settings, ..place.options(false) };
    let opened = Database::open(place.volume(), &place.database, &options, place.environment()).await;
    // With the opening they are kept.
    closing(&opened?, Ok(())).await
}

fn json(what: &impl Serialize) -> Outcome {
    say(&(serde_json::to_string_pretty(what).map_err(Failure::failed)? + "\n"))
}

/// Arguments of `tanada kv policy`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada kv vol policy
  tanada kv vol --store index policy staging_only
  tanada kv vol policy '{\"root\": {\"keys\": \"fastest\", \"values\": \"log\"}, \"leaf\": {\"keys\": \"fastest\", \"values\": \"sata\"}}'

What lies elsewhere is moved when the database is in use, and by tanada kv DIR compact at once.")]
pub struct PolicyArguments {
    /// The policy from now on: staging_max_capacity, staging_min_capacity, staging_only, capacity_only, or JSON
    policy: Option<String>,
}

impl PolicyArguments {
    /// Whether anything is to be changed.
    pub(super) fn changes(&self) -> bool {
        self.policy.is_some()
    }
}

pub(super) async fn policy(place: &Place, arguments: PolicyArguments) -> Outcome {
    let Some(text) = &arguments.policy else {
        let database = place.read().await?;
        let store = place.store(&database);
        return json(&closing(&database, store).await?.settings().policy);
    };
    let policy = settings::policy(text)?;
    let database = place.write().await?;
    let set = async { Ok(place.store(&database)?.set_policy(&policy).await?) };
    let set = set.await;
    closing(&database, set).await
}

/// Arguments of `tanada kv checkpoint`.
#[derive(Debug, Args)]
pub struct CheckpointArguments {
    /// The copy's name
    name: String,
}

pub(super) async fn checkpoint(place: &Place, arguments: CheckpointArguments) -> Outcome {
    // The original is only read.
    let database = place.read().await?;
    let copied = database.checkpoint(&arguments.name).await;
    closing(&database, copied.map_err(Failure::from)).await
}

/// Arguments of `tanada kv drop`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada kv vol drop sessions
  tanada kv vol --database shop drop lines")]
pub struct DropArguments {
    /// The store
    #[arg(value_name = "STORE")]
    name: String,
}

pub(super) async fn drop_store(place: &Place, arguments: DropArguments) -> Outcome {
    let database = place.write().await?;
    let dropped = database.drop_store(&arguments.name).await;
    closing(&database, dropped.map_err(Failure::from)).await
}

/// Arguments of `tanada kv destroy`.
#[derive(Debug, Args)]
pub struct DestroyArguments {
    /// The database
    #[arg(value_name = "DATABASE")]
    name: String,
}

pub(super) async fn destroy(place: &Place, arguments: DestroyArguments) -> Outcome {
    Ok(Database::destroy(place.volume(), &arguments.name, place.environment()).await?)
}
