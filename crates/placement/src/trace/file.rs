//! Trace files.
pub struct End; pub struct TraceReader; pub struct TraceWriter;
