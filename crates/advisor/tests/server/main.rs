//! Advice on a MariaDB that runs, and its clients through the proxy.
//!
//! Where there is no MariaDB the tests say so and pass.

#![allow(clippy::unwrap_used)]

mod advised;
mod mariadb;
mod proxied;
