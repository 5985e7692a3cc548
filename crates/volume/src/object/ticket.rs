//! Tickets of an object's reads: where the device below holds them.

use tanada_io::Ticket;

pub(super) const IS_READ: u64 = 1 << 61;

pub(super) const IS_FILE: u64 = 1 << 60;

/// The class and the device of a read, and the place that the device below gave it.
pub(super) const CLASS_SHIFT: u32 = 54;

pub(super) const DEVICE_SHIFT: u32 = 44;

/// The ticket of a read that the device below gave `ticket`: of the adopted file, or of a device of a class.
pub(super) fn read_ticket(ticket: Ticket, device: Option<(u8, usize)>) -> Ticket {
    let source = match device {
        Some((class, device)) => u64::from(class) << CLASS_SHIFT | (device as u64) << DEVICE_SHIFT,
        None => IS_FILE,
    };
    let is_named = ticket != Ticket::default() && ticket.place >> DEVICE_SHIFT == 0;
    if is_named {
        Ticket { place: IS_READ | source | ticket.place, no: ticket.no }
    } else {
        Ticket::default()
    }
}
