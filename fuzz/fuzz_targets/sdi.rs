//! MySQL's serialized dictionary information: values in its JSON are replaced, removed and repeated, or pages of its
//! tree are edited and sealed.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tanada_fuzz::{Base, Input, bases, samples, table};
use tanada_innodb::schema::table_from_sdi;

/// The objects of what `ibd2sdi` printed.
static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let files = samples("fixtures/cases.tar.zst", |name| name.ends_with(".sdi.json"));
    let parsed = files.values().filter_map(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let entries = parsed.filter_map(|file| file.as_array().cloned()).flatten();
    entries.filter_map(|entry| entry.get("object").cloned()).collect()
});

static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let tables = ["empty_t", "instant_add", "desc_idx", "part_hash#p#p0"];
    let wanted = |name: &str| name.starts_with("mysql") && tables.iter().any(|table| name.ends_with(table));
    bases(&["fixtures/cases.tar.zst"], wanted)
});

const MAX_EDITS: usize = 12;

/// The number of values in `value`, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) => values.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Edits the value with the number `at`, in the order of [`count`].
fn edit(value: &mut Value, at: &mut usize, input: &mut Input<'_>) {
    if *at == 0 {
        *at = usize::MAX;
        replace(value, input);
        return;
    }
    *at -= 1;
    let below: Box<dyn Iterator<Item = &mut Value>> = match value {
        Value::Array(values) => Box::new(values.iter_mut()),
        Value::Object(fields) => Box::new(fields.values_mut()),
        _ => return,
    };
    for value in below {
        edit(value, at, input);
        if *at == usize::MAX {
            return;
        }
    }
}

fn replace(value: &mut Value, input: &mut Input<'_>) {
    let how = input.byte();
    match (how % 8, &mut *value) {
        (0, Value::Array(values)) if !values.is_empty() => {
            values.remove(input.word() % values.len());
        }
        (1, Value::Array(values)) if !values.is_empty() => {
            let copy = values[input.word() % values.len()].clone();
            values.push(copy);
        }
        (0 | 1, Value::Object(fields)) if !fields.is_empty() => {
            let key = fields.keys().nth(input.word() % fields.len()).cloned();
            key.map(|key| fields.remove(&key));
        }
        (2, Value::String(text)) => {
            let mut bytes = text.clone().into_bytes();
            input.edit_bytes(&mut bytes);
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
        (3, _) => *value = Value::Null,
        (4, _) => {
            *value = Value::String(String::from_utf8_lossy(input.bytes(usize::from(how >> 2))).into_owned())
        }
        (5, _) => {
            let mut number = [0; 8];
            let bytes = input.bytes(8);
            number[8 - bytes.len()..].copy_from_slice(bytes);
            *value = i64::from_be_bytes(number).into();
        }
        (6, _) => *value = (how & 16 == 0).into(),
        _ => *value = (input.word() as u64).into(),
    }
}

fuzz_target!(
    // Outside of the time that an input may take.
    init: {
        LazyLock::force(&OBJECTS);
        LazyLock::force(&BASES);
    },
    |bytes: &[u8]| {
        let mut input = Input(bytes);
        if input.byte() & 31 == 31 {
            let base = input.choose(&BASES);
            let mut file = base.file.clone();
            input.edit_pages(&mut file, base.framing, 0);
            table::mount(file, None);
            return;
        }
        let mut object = input.choose(&OBJECTS).clone();
        for _ in 0..MAX_EDITS {
            if input.is_over() {
                break;
            }
            let mut at = input.word() % count(&object);
            edit(&mut object, &mut at, &mut input);
        }
        let _ = table_from_sdi(object.to_string().as_bytes());
    }
);
