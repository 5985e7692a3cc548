//! A simulated disk with faults, and the campaigns that prove the layers that write.
//!
//! Beside the house: it tests the layers below it and is never a dependency of what is shipped. Below: `tanada-volume`, `tanada-io`, `tanada-base`.
#![forbid(unsafe_code)]
