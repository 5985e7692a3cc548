//! The tiered volume: objects made of chunks, each mapped to a physical chunk of one media class.
//!
//! Above: relations that read and write objects. Below: `tanada-io` for devices, `tanada-base`.
#![forbid(unsafe_code)]
