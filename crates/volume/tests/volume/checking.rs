//! A check finds what is wrong and nothing else, and a repair guesses nothing.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use futures::executor::block_on;
use tanada_io::Method;
use tanada_volume::directory::HostOpener;
use tanada_volume::{Attributes, Finding, Parts, Relocation, Severity, Volume};

use crate::{CHUNK, Place, bytes};

fn volume(place: &Place) {
    block_on(async {
        let volume = place.create(32).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        object.write_bytes(0, &bytes(7 * CHUNK as usize, 1)).await.unwrap();
        object.mirror_to(0..3, "fast", &Relocation::default()).await.unwrap();
        object.sync().await.unwrap();
    });
}

fn spoil(place: &Place, file: &str, offset: u64) {
    let file = fs::OpenOptions::new().write(true).open(place.path(file)).unwrap();
    file.write_all_at(b"spoilt", offset).unwrap();
}

#[test]
fn a_sound_volume_has_no_findings_clean_or_not() {
    let place = Place::new(&[("fast", 1), ("slow", 2)]);
    volume(&place);
    let report = block_on(Volume::check(&place.parts())).unwrap();
    assert!(report.is_sound() && !report.was_clean, "{:?}", report.findings);
    assert_eq!((report.objects, report.chunks), (1, 7));
    block_on(async { place.open().await.close().await.unwrap() });
    let report = block_on(Volume::check(&place.parts())).unwrap();
    assert!(report.is_sound() && report.was_clean);
}

#[test]
fn each_kind_of_damage_is_found_and_named() {
    let damages: [(&str, u64, Finding); 4] = [
        ("metadata", 4096 + 70, Finding::SuperblockDamaged { place: 1 }),
        ("slow-1", 20, Finding::LabelDamaged { class: "slow".to_owned(), device: 1 }),
        ("slow-1", 0, Finding::LabelDamaged { class: "slow".to_owned(), device: 1 }),
        ("fast-0", 33, Finding::LabelDamaged { class: "fast".to_owned(), device: 0 }),
    ];
    for (file, offset, finding) in damages {
        let place = Place::new(&[("fast", 1), ("slow", 2)]);
        volume(&place);
        block_on(async { place.open().await.close().await.unwrap() });
        spoil(&place, file, offset);
        let report = block_on(Volume::check(&place.parts())).unwrap();
        assert_eq!(report.findings, std::slice::from_ref(&finding));
        let repaired = block_on(Volume::repair(&place.parts())).unwrap();
        assert_eq!(repaired.findings, std::slice::from_ref(&finding));
        let after = block_on(Volume::check(&place.parts())).unwrap();
        assert_eq!(after.is_sound(), finding.severity() == Severity::Repairable, "{:?}", after.findings);
    }
}

#[test]
fn devices_that_are_missing_short_or_strange_are_found() {
    let place = Place::new(&[("fast", 1), ("slow", 2)]);
    volume(&place);
    let mut parts = place.parts();
    parts.classes[1].devices.swap(0, 1);
    parts.classes[0].devices[0] = None;
    let report = block_on(Volume::check(&parts)).unwrap();
    let wrong = |device| Finding::WrongDevice { class: "slow".to_owned(), device };
    assert_eq!(
        report.findings,
        [wrong(0), wrong(1), Finding::DeviceMissing { class: "fast".to_owned(), device: 0 }]
    );
    fs::File::options().write(true).open(place.path("slow-0")).unwrap().set_len(100_000).unwrap();
    let report = block_on(Volume::check(&place.parts())).unwrap();
    assert!(matches!(&report.findings[..], [Finding::DeviceTooSmall { device: 0, size: 100_000, .. }]));
}

#[test]
fn a_changed_file_is_found_and_its_mirrors_are_dropped_by_repair() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    let file = place.path("file");
    fs::write(&file, bytes(2 * CHUNK as usize, 1)).unwrap();
    let parts = || Parts { opener: Arc::new(HostOpener::new(Method::Buffered)), ..place.parts() };
    block_on(async {
        let volume = Volume::create(parts(), &place.settings(8)).await.unwrap();
        let object = volume.adopt("a", file.to_str().unwrap(), &Attributes::default()).unwrap();
        object.mirror_to(0..2, "fast", &Relocation::default()).await.unwrap();
        drop((object, volume));
        fs::write(&file, b"other").unwrap();
        let report = Volume::check(&parts()).await.unwrap();
        assert!(matches!(&report.findings[..], [Finding::AdoptedChanged { .. }]), "{:?}", report.findings);
        Volume::repair(&parts()).await.unwrap();
        assert!(Volume::check(&parts()).await.unwrap().is_sound());
        fs::remove_file(&file).unwrap();
        let report = Volume::check(&parts()).await.unwrap();
        assert!(matches!(&report.findings[..], [Finding::AdoptedMissing { .. }]));
    });
}
