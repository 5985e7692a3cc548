//! Stands between a volume and its devices: tests say what becomes of I/Os on the way.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tanada_io::{Backend, Completion, Device, Method, Request, Ticket};

/// What is done with I/Os that are on their way to a device.
pub trait Between: fmt::Debug + Send + Sync + 'static {
    fn alignment(&self, device: &Device) -> usize {
        device.alignment()
    }

    fn start(&self, device: &Device, request: Request, completion: Completion) -> Ticket;
}

#[derive(Debug)]
struct Interposed<B> {
    device: Device,
    between: Arc<B>,
}

/// The device with `between` before it.
pub fn interpose<B: Between>(device: &Device, between: &Arc<B>) -> Device {
    Device::from_backend(Interposed { device: device.clone(), between: between.clone() })
}

impl<B: Between> Backend for Interposed<B> {
    fn path(&self) -> &Path {
        self.device.path()
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.device.size_bytes().map_err(io::Error::other)
    }

    fn method(&self) -> Method {
        self.device.method()
    }

    fn alignment(&self) -> usize {
        self.between.alignment(&self.device)
    }

    fn start(&self, request: Request, completion: Completion) -> Ticket {
        self.between.start(&self.device, request, completion)
    }
}
