//! Packets as clients send them.

#![allow(clippy::unwrap_used)]

use tokio::sync::mpsc::{Receiver, channel};

use super::*;
use crate::proxy::Event;

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len();
    [&[len as u8, (len >> 8) as u8, (len >> 16) as u8, sequence], payload].concat()
}

struct Watched {
    session: Session,
    running: Running,
    events: Receiver<Event>,
}

impl Watched {
    fn new(capabilities: u32) -> Watched {
        let (sender, events) = channel(64);
        let mut watched = Watched { session: Session::default(), running: Running::new(1, sender), events };
        let mut greeting = capabilities.to_le_bytes().to_vec();
        greeting.resize(32, 0);
        greeting.extend_from_slice(b"root\0\0shop\0");
        watched.send(&packet(1, &greeting));
        watched
    }

    fn send(&mut self, bytes: &[u8]) -> bool {
        self.session.see(&Chunk::FromClient(bytes.to_vec()), &mut self.running)
    }

    fn answer(&mut self, bytes: &[u8]) {
        self.session.see(&Chunk::FromServer(Tail::of(bytes)), &mut self.running);
    }

    fn statements(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            if let Event::Begins { statement, database, .. } = event {
                found.push(format!("{}: {statement}", database.unwrap_or_default()));
            }
        }
        found
    }
}

const PLAIN: u32 = CONNECT_WITH_DB | SECURE_CONNECTION;

#[test]
fn queries_are_seen_however_they_are_cut() {
    let mut watched = Watched::new(PLAIN);
    let query = packet(0, b"\x03select 1; select 2");
    query.chunks(3).for_each(|piece| assert!(watched.send(piece)));
    assert_eq!(watched.statements(), ["shop: select 1", "shop:  select 2"]);
    watched.send(&packet(0, b"\x02other"));
    watched.send(&packet(0, b"\x03select 3"));
    assert_eq!(watched.statements(), ["other: select 3"]);
}

#[test]
fn encrypted_and_compressed_connections_are_given_up() {
    for (capability, hidden) in [(SSL, "encrypted"), (COMPRESS, "compressed"), (ZSTD, "compressed")] {
        let (sender, _events) = channel(1);
        let mut running = Running::new(1, sender);
        let mut session = Session::default();
        let mut greeting = capability.to_le_bytes().to_vec();
        greeting.resize(32, 0);
        assert!(!session.see(&Chunk::FromClient(packet(1, &greeting)), &mut running));
        assert_eq!(session.hidden(), hidden);
    }
}

#[test]
fn prepared_statements_are_seen_with_their_values() {
    let mut watched = Watched::new(PLAIN);
    watched.send(&packet(0, b"\x16select * from t where a = ? and b = ? and c = ?"));
    watched.answer(&packet(1, &[0, 9, 0, 0, 0, 1, 0, 3, 0, 0, 0, 0]));
    let execute = [
        [0x17u8, 9, 0, 0, 0, 0, 1, 0, 0, 0, 0b100, 1, 3, 0, 253, 0, 6, 0].as_slice(),
        (-5i32).to_le_bytes().as_slice(),
        b"\x04it's",
    ]
    .concat();
    watched.send(&packet(0, &execute));
    assert_eq!(watched.statements(), ["shop: select * from t where a = -5 and b = 'it''s' and c = NULL"]);
    let closed = packet(0, &[0x19, 9, 0, 0, 0]);
    watched.send(&closed);
    watched.send(&packet(0, &execute));
    assert!(watched.statements().is_empty());
}

#[test]
fn file_packets_are_no_commands_when_their_number_wraps() {
    let mut watched = Watched::new(PLAIN);
    watched.send(&packet(0, b"\x03load data local infile 'x' into table t"));
    for no in 2..600u32 {
        watched.send(&packet(no as u8, b"\x03select 1"));
    }
    assert!(watched.statements().is_empty());
}

#[test]
fn packets_of_16_mib_go_on_and_the_next_command_is_seen() {
    let mut watched = Watched::new(PLAIN);
    let long = vec![b'x'; FULL - 1];
    watched.send(&packet(0, &[b"\x03".as_slice(), &long].concat()));
    watched.send(&packet(1, b"select 1"));
    watched.send(&packet(0, b"\x03select 2"));
    assert_eq!(watched.statements(), ["shop: select 2"]);
}

#[test]
fn a_gap_hides_statements_up_to_the_next_whole_command() {
    let mut watched = Watched::new(PLAIN);
    watched.send(&packet(0, b"\x03select 1")[..6]);
    watched.session.see(&Chunk::Gap, &mut watched.running);
    watched.send(b"ect 1");
    watched.send(&packet(0, b"\x03select 2"));
    assert_eq!(watched.statements(), ["shop: select 2"]);
}

#[test]
fn ends_of_answers_are_recognized() {
    let ends = |bytes: &[u8]| ends_answer(&Tail::of(bytes));
    assert!(ends(&packet(1, &[0, 0, 0, 2, 0, 0, 0])));
    let rows = [packet(1, b"\x01"), packet(2, b"\x011"), packet(3, &[0xfe, 0, 0, 2, 0])].concat();
    assert!(ends(&rows));
    assert!(!ends(&rows[..8]));
}
