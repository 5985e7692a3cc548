//! `RANDOM_BYTES` and `UUID_SHORT`, which give another value for each row.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::arrow::array::{ArrayRef, AsArray, BinaryArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tanada_innodb::schema::Server;

use crate::settings::TanadaOptions;

/// Name of the function that gives random bytes.
pub const RANDOM_BYTES: &str = "tanada_random_bytes";
/// Name of the function that gives a number once.
pub const UUID_SHORT: &str = "tanada_uuid_short";

/// Most bytes that are asked for at once.
const MAX_BYTES: i64 = 1024;
/// The number of the server, which is above the time of its start and a number that counts.
const SERVER_ID: u64 = 1;

/// Both functions.
pub(super) fn functions() -> [ScalarUDF; 2] {
    let of_a_length = Signature::any(1, Volatility::Volatile);
    let of_nothing = Signature::nullary(Volatility::Volatile);
    [
        ScalarUDF::from(Random { name: RANDOM_BYTES, signature: of_a_length }),
        ScalarUDF::from(Random { name: UUID_SHORT, signature: of_nothing }),
    ]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Random {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Random {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.name == RANDOM_BYTES { DataType::Binary } else { DataType::UInt64 })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        if self.name == UUID_SHORT {
            let numbers: UInt64Array = (0..rows).map(|_| Some(short_uuid())).collect();
            return Ok(ColumnarValue::Array(Arc::new(numbers)));
        }
        let server = arguments.config_options.extensions.get::<TanadaOptions>().cloned().unwrap_or_default();
        match arguments.args.as_slice() {
            [length] => random_bytes(&length.to_array(rows)?, server.server).map(ColumnarValue::Array),
            _ => internal_err!("RANDOM_BYTES has one operand"),
        }
    }
}

/// Bytes of the lengths in `lengths`. Of none MariaDB gives an empty text, of others out of range NULL.
fn random_bytes(lengths: &ArrayRef, server: Server) -> Result<ArrayRef> {
    let Some(lengths) = lengths.as_primitive_opt::<Int64Type>() else {
        return internal_err!("the length of RANDOM_BYTES is no integer");
    };
    let mut source = File::open("/dev/urandom")?;
    let mut all: Vec<Option<Vec<u8>>> = Vec::new();
    for length in lengths {
        all.push(match length {
            None => None,
            Some(length @ 1..=MAX_BYTES) => {
                let mut bytes = vec![0; length as usize];
                source.read_exact(&mut bytes)?;
                Some(bytes)
            }
            Some(_) if server == Server::MySql => {
                return exec_err!("length value is out of range in 'random_bytes'");
            }
            Some(0) => Some(Vec::new()),
            Some(_) => None,
        });
    }
    Ok(Arc::new(all.into_iter().collect::<BinaryArray>()))
}

/// A number that this process gives once.
fn short_uuid() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let begin = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (SERVER_ID << 56) | ((now.as_secs() & 0xffff_ffff) << 24)
    };
    let _ = NEXT.compare_exchange(0, begin(), Ordering::Relaxed, Ordering::Relaxed);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Array, Int64Array};

    use super::*;

    #[test]
    fn random_bytes_are_as_many_as_asked_for() {
        let lengths: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(1024)]));
        let bytes = random_bytes(&lengths, Server::MySql).unwrap();
        let bytes = bytes.as_binary::<i32>();
        assert_eq!((bytes.value(0).len(), bytes.is_null(1), bytes.value(2).len()), (3, true, 1024));
        let outside: ArrayRef = Arc::new(Int64Array::from(vec![0, 1025]));
        assert!(random_bytes(&outside, Server::MySql).is_err());
        let of_mariadb = random_bytes(&outside, Server::MariaDb).unwrap();
        assert!(of_mariadb.is_valid(0) && of_mariadb.is_null(1));
        assert!(short_uuid() < short_uuid());
    }
}
