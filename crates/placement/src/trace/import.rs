//! Logs of other tools as traces.
