//! Random operations on objects, against plain vectors, with openings in between.

use std::collections::BTreeMap;

use futures::executor::block_on;
use proptest::prelude::*;
use tanada_volume::{Attributes, Relocation, Volume};

use crate::{CHUNK, Place, bytes};

const MOST: u64 = 6 * CHUNK;

#[derive(Debug, Clone)]
enum Step {
    Write { object: u8, offset: u64, len: u64, seed: u64 },
    Read { object: u8, offset: u64, len: u64 },
    Resize { object: u8, size: u64 },
    Punch { object: u8, offset: u64, len: u64 },
    Sync { object: u8 },
    Delete { object: u8 },
    Rename { object: u8, to: u8 },
    Move { object: u8, first: u64, to_fast: bool },
    Mirror { object: u8, first: u64 },
    Checkpoint,
    Open { clean: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let object = 0..3u8;
    let offset = prop_oneof![0..MOST, (0..MOST / 4096).prop_map(|block| block * 4096)];
    let len = prop_oneof![1..3 * CHUNK, (1..40u64).prop_map(|blocks| blocks * 4096)];
    prop_oneof![
        6 => (object.clone(), offset.clone(), len.clone(), any::<u64>())
            .prop_map(|(object, offset, len, seed)| Step::Write { object, offset, len, seed }),
        4 => (object.clone(), offset.clone(), len.clone())
            .prop_map(|(object, offset, len)| Step::Read { object, offset, len }),
        2 => (object.clone(), offset.clone()).prop_map(|(object, size)| Step::Resize { object, size }),
        2 => (object.clone(), offset, len).prop_map(|(object, offset, len)| Step::Punch { object, offset, len }),
        1 => object.clone().prop_map(|object| Step::Sync { object }),
        1 => object.clone().prop_map(|object| Step::Delete { object }),
        1 => (object.clone(), 0..3u8).prop_map(|(object, to)| Step::Rename { object, to }),
        2 => (object.clone(), 0..6u64, any::<bool>())
            .prop_map(|(object, first, to_fast)| Step::Move { object, first, to_fast }),
        2 => (object, 0..6u64).prop_map(|(object, first)| Step::Mirror { object, first }),
        1 => Just(Step::Checkpoint),
        1 => any::<bool>().prop_map(|clean| Step::Open { clean }),
    ]
}

/// Does a step on both; the volume, which may be another one afterwards.
async fn apply(place: &Place, volume: Volume, model: &mut BTreeMap<String, Vec<u8>>, step: &Step) -> Volume {
    let name = |object: u8| format!("object {object}");
    let open = |object: u8| match volume.open_object(&name(object)) {
        Ok(found) => found,
        Err(_) => volume.create_object(&name(object), &Attributes::default()).unwrap(),
    };
    let relocation = Relocation::default();
    match *step {
        Step::Write { object, offset, len, seed } => {
            let data = bytes(len as usize, seed);
            open(object).write_bytes(offset, &data).await.unwrap();
            let content = model.entry(name(object)).or_default();
            let end = (offset + len) as usize;
            content.resize(content.len().max(end), 0);
            content[offset as usize..end].copy_from_slice(&data);
        }
        Step::Read { object, offset, len } => {
            let found = open(object).read_bytes(offset, len as usize).await.unwrap();
            let content = model.entry(name(object)).or_default();
            let expected: Vec<u8> =
                content.iter().skip(offset as usize).take(len as usize).copied().collect();
            assert!(found == expected, "{len} bytes at {offset} of {}", name(object));
        }
        Step::Resize { object, size } => {
            open(object).resize(size).await.unwrap();
            model.entry(name(object)).or_default().resize(size as usize, 0);
        }
        Step::Punch { object, offset, len } => {
            open(object).punch(offset, len).await.unwrap();
            let content = model.entry(name(object)).or_default();
            let end = content.len().min((offset + len) as usize);
            if (offset as usize) < end {
                content[offset as usize..end].fill(0);
            }
        }
        Step::Sync { object } => {
            open(object).sync().await.unwrap();
            model.entry(name(object)).or_default();
        }
        Step::Delete { object } => {
            assert_eq!(volume.delete(&name(object)).await.is_ok(), model.remove(&name(object)).is_some());
        }
        Step::Rename { object, to } => {
            let renamed = volume.rename(&name(object), &name(to)).is_ok();
            let possible =
                model.contains_key(&name(object)) && (object == to || !model.contains_key(&name(to)));
            assert_eq!(renamed, possible);
            if renamed && let Some(content) = model.remove(&name(object)) {
                model.insert(name(to), content);
            }
        }
        Step::Move { object, first, to_fast } => {
            let class = if to_fast { "fast" } else { "slow" };
            open(object).move_to(first..first + 2, class, &relocation).await.unwrap();
            model.entry(name(object)).or_default();
        }
        Step::Mirror { object, first } => {
            open(object).mirror_to(first..first + 2, "fast", &relocation).await.unwrap();
            model.entry(name(object)).or_default();
        }
        Step::Checkpoint => volume.checkpoint().await.unwrap(),
        Step::Open { clean } => {
            if clean {
                volume.close().await.unwrap();
            } else {
                volume.sync().await.unwrap();
            }
            drop(volume);
            let report = Volume::check(&place.parts()).await.unwrap();
            assert!(report.is_sound(), "{:?}", report.findings);
            return place.open().await;
        }
    }
    volume
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn objects_are_what_their_model_is(steps in prop::collection::vec(step(), 1..40)) {
        let place = Place::new(&[("fast", 1), ("slow", 2)]);
        block_on(async {
            let mut model = BTreeMap::new();
            let mut volume = place.create(64).await;
            for step in steps.iter().chain([&Step::Open { clean: false }]) {
                volume = apply(&place, volume, &mut model, step).await;
            }
            let mut homes = 0;
            for (name, content) in &model {
                let object = volume.open_object(name).unwrap();
                assert_eq!(object.size_bytes(), content.len() as u64);
                assert!(object.read_bytes(0, MOST as usize * 2).await.unwrap() == *content, "{name}");
                homes += object.chunks(0..u64::MAX).iter().filter(|chunk| chunk.home.is_some()).count() as u64;
            }
            assert_eq!(volume.objects().len(), model.len());
            let mirrors: usize = volume.objects().iter().map(|object| {
                object.chunks(0..u64::MAX).iter().filter(|chunk| chunk.mirror.is_some()).count()
            }).sum();
            let taken: u64 = volume.classes().iter().map(|class| class.taken).sum();
            assert_eq!(taken, homes + mirrors as u64, "no space is lost");
        });
    }
}
