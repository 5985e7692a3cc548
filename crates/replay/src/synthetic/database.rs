//! Tables and indexes of TPC-H with DBT-3's indexes, as InnoDB lays them out: a file per table, an index in extents of
//! 1 MiB of its own.

use tanada_placement::{Cause, Extent, ObjectNo, Record, Trace};

pub(super) const PAGE: u64 = 16 << 10;

/// The indexes that the queries use, by their place in [`INDEXES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub(super) enum Index {
    Lineitem = 0,
    LineitemSuppkeyPartkey = 2,
    LineitemPartkey = 3,
    LineitemSuppkey = 4,
    LineitemOrderkey = 6,
    Orders = 9,
    OrdersOrderdate = 10,
    OrdersCustkey = 11,
    Partsupp = 12,
    Customer = 15,
    CustomerNationkey = 16,
    Part = 17,
    Supplier = 18,
    SupplierNationkey = 19,
}

/// Table, index name and tenths of a MB at scale 1; a table's indexes together, its own rows first.
const INDEXES: [(&str, &str, u64); 20] = [
    ("lineitem", "PRIMARY", 7900),
    ("lineitem", "i_l_shipdate", 1500),
    ("lineitem", "i_l_suppkey_partkey", 1900),
    ("lineitem", "i_l_partkey", 1600),
    ("lineitem", "i_l_suppkey", 1600),
    ("lineitem", "i_l_receiptdate", 1500),
    ("lineitem", "i_l_orderkey", 1600),
    ("lineitem", "i_l_orderkey_quantity", 1900),
    ("lineitem", "i_l_commitdate", 1500),
    ("orders", "PRIMARY", 1800),
    ("orders", "i_o_orderdate", 350),
    ("orders", "i_o_custkey", 400),
    ("partsupp", "PRIMARY", 1400),
    ("partsupp", "i_ps_partkey", 200),
    ("partsupp", "i_ps_suppkey", 200),
    ("customer", "PRIMARY", 300),
    ("customer", "i_c_nationkey", 40),
    ("part", "PRIMARY", 320),
    ("supplier", "PRIMARY", 20),
    ("supplier", "i_s_nationkey", 10),
];

/// Where an index lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) object: ObjectNo,
    pub(super) cause: Cause,
    pub(super) first_page: u64,
    pub(super) pages: u64,
}

impl Placed {
    pub(super) fn extent(&self) -> Extent {
        Extent { offset: self.first_page * PAGE, len: self.pages * PAGE }
    }
}

#[derive(Debug)]
pub(super) struct Database {
    placed: Vec<Placed>,
    pub(super) pages: u64,
}

impl Database {
    /// At `scale`; its tables and indexes are named in `trace`.
    pub(super) fn new(scale: f64, trace: &mut Trace) -> Database {
        let mut placed: Vec<Placed> = Vec::new();
        let mut tables: Vec<(&str, u64)> = Vec::new();
        let mut records = Vec::new();
        for (no, (table, index, tenths)) in INDEXES.into_iter().enumerate() {
            // Whole extents.
            let extents = (tenths as f64 * 1e5 * scale / (1 << 20) as f64).ceil().max(1.0) as u64;
            let pages = extents * 64;
            if tables.last().is_none_or(|(last, _)| *last != table) {
                tables.push((table, 0));
            }
            let object = ObjectNo(tables.len() as u32 - 1);
            let Some((_, end)) = tables.last_mut() else { continue };
            let cause = Cause(no as u16 + 1);
            placed.push(Placed { object, cause, first_page: *end, pages });
            *end += pages;
            records.push(Record::Cause { name: format!("{table}.{index}") });
        }
        let pages = tables.iter().map(|(_, pages)| pages).sum();
        let objects = tables
            .iter()
            .map(|(name, pages)| Record::Object { name: (*name).to_owned(), bytes: pages * PAGE });
        for record in objects.chain(records) {
            // A dozen names at most: none is one too many.
            let _ = trace.push(record);
        }
        Database { placed, pages }
    }

    pub(super) fn index(&self, index: Index) -> Placed {
        self.placed[index as usize]
    }
}
