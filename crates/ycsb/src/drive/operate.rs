//! What a client does to the engine, and the check of what it reads.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tanada_base::SplitMix64;

use super::{Driver, Phase};
use crate::draw::AcknowledgedCounter;
use crate::engine::Engine;
use crate::workload::{Drawn, Draws, Field, Operation, Records};
use crate::{Error, Result};

/// An operation with everything it needs: making values is not the engine's time.
#[derive(Debug)]
pub struct Work {
    drawn: Drawn,
    key: Bytes,
    value: Option<Bytes>,
    field: Field,
    seed: u64,
}

impl Work {
    pub fn operation(&self) -> Operation {
        self.drawn.operation
    }
}

#[derive(Debug)]
enum Source {
    /// Records one after the other; the number of who loads.
    Load(SplitMix64),
    Draws(Box<Draws>),
}

/// Bytes of keys and values that an operation is about.
#[derive(Debug, Clone, Copy)]
pub struct Moved {
    pub written: u64,
    pub read: u64,
}

/// A client's hands.
#[derive(Debug)]
pub struct Operator {
    engine: Arc<dyn Engine>,
    records: Records,
    update_all_fields: bool,
    source: Source,
    inserted: Arc<AcknowledgedCounter>,
}

impl Operator {
    /// One for each client. What takes long is made once.
    pub fn all(
        driver: &Driver,
        phase: Phase,
        engine: &Arc<dyn Engine>,
        inserted: &Arc<AcknowledgedCounter>,
    ) -> Vec<Operator> {
        let clients = driver.clients.count() as u64;
        let draws = match phase {
            Phase::Load => None,
            Phase::Run(workload) => {
                let inserted = inserted.clone();
                Some(Draws::new(workload, driver.distribution, inserted, driver.operations, clients))
            }
        };
        let new = |no| Operator::new(driver, draws.as_ref(), no, engine.clone(), inserted.clone());
        (0..clients).map(new).collect()
    }

    fn new(
        driver: &Driver,
        draws: Option<&Draws>,
        no: u64,
        engine: Arc<dyn Engine>,
        inserted: Arc<AcknowledgedCounter>,
    ) -> Operator {
        let source = match draws {
            None => Source::Load(SplitMix64::new(driver.seed << 40 ^ (no + 1))),
            Some(draws) => Source::Draws(Box::new(draws.of_client(no).seeded(driver.seed))),
        };
        Operator {
            engine,
            records: driver.records,
            update_all_fields: driver.update_all_fields,
            source,
            inserted,
        }
    }

    /// Draws the next operation.
    pub fn prepare(&mut self) -> Work {
        let (drawn, random) = match &mut self.source {
            Source::Load(random) => {
                let record = self.inserted.take();
                (Drawn { operation: Operation::Insert, record, length: 1 }, random)
            }
            Source::Draws(draws) => (draws.draw(), draws.random()),
        };
        let writes_whole = match drawn.operation {
            Operation::Insert => true,
            Operation::Update => self.update_all_fields,
            Operation::Read | Operation::Scan | Operation::ReadModifyWrite => false,
        };
        let field = random.below(self.records.fields as u64) as usize;
        Work {
            drawn,
            key: self.records.key(drawn.record),
            value: writes_whole.then(|| self.records.value(drawn.record, random)),
            field: Field { record: drawn.record, field },
            seed: random.next_u64(),
        }
    }

    /// Does it; bytes of keys and values that were written and read.
    pub async fn perform(&self, work: &Work) -> Result<Moved> {
        let Work { drawn, key, value, .. } = work;
        let record = (key.len() + self.records.value_bytes()) as u64;
        let mut moved = Moved { written: record, read: 0 };
        match (drawn.operation, value) {
            (Operation::Insert, value) => {
                self.engine.insert(key.clone(), value.clone().unwrap_or_default()).await?;
                self.inserted.acknowledge(drawn.record);
            }
            (Operation::Update, Some(value)) => self.engine.update(key.clone(), value.clone()).await?,
            (Operation::Update, None) | (Operation::ReadModifyWrite, _) => {
                self.change(work).await?;
                moved.read = record;
            }
            (Operation::Read, _) => {
                self.read(work).await?;
                moved = Moved { written: 0, read: record };
            }
            (Operation::Scan, _) => moved = Moved { written: 0, read: record * self.scan(work).await? },
        }
        Ok(moved)
    }

    async fn read(&self, work: &Work) -> Result<()> {
        let value = self.engine.read(&work.key).await?;
        let value = value.ok_or_else(|| missing(&work.key))?;
        self.check(work, &value)
    }

    /// Records that it gave.
    async fn scan(&self, work: &Work) -> Result<u64> {
        // There is at least the record that the scan begins with.
        let found = self.engine.scan(&work.key, work.drawn.length as usize).await?;
        if found == 0 || found as u64 > work.drawn.length {
            let message = format!("a scan of {} records from {:?} gave {found}", work.drawn.length, work.key);
            return Err(Error::failed(message));
        }
        Ok(found as u64)
    }

    async fn change(&self, work: &Work) -> Result<()> {
        let wrong = Mutex::new(None);
        let change = |value: &[u8]| {
            if let Err(error) = self.check(work, value) {
                *wrong.lock() = Some(error);
            }
            self.records.with_field(value, work.field, &mut SplitMix64::new(work.seed))
        };
        let was_there = self.engine.read_modify_write(work.key.clone(), &change).await?;
        if !was_there {
            return Err(missing(&work.key));
        }
        wrong.into_inner().map_or(Ok(()), Err)
    }

    fn check(&self, work: &Work, value: &[u8]) -> Result<()> {
        if self.records.is_value(value, work.field) {
            return Ok(());
        }
        Err(Error::failed(format!(
            "field {} of {:?} ({} bytes) is not what was written there",
            work.field.field,
            work.key,
            value.len()
        )))
    }
}

fn missing(key: &Bytes) -> Error {
    Error::failed(format!("{key:?} was written, and is not there"))
}
