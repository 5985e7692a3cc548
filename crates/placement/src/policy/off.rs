//! `off`: nothing is moved.

use super::{Options, Policy};
use crate::Result;
use crate::action::Decision;
use crate::event::{Context, Event};

#[derive(Debug, Clone)]
struct Off;

pub(super) fn make(_: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    Ok(Box::new(Off))
}

impl Policy for Off {
    fn name(&self) -> &'static str {
        "off"
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }

    fn handle(&mut self, _: &Context<'_>, _: &Event<'_>, _: &mut Vec<Decision>) {}
}
