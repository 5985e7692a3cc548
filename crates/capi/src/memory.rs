//! Pointers from C as references and slices, and back. Every function that trusts a pointer says what its caller has to
//! promise.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use crate::code::{Code, Failure};

fn null(what: &str) -> Failure {
    Failure::of(Code::Invalid, format!("{what} is NULL"))
}

/// A string.
///
/// # Safety
/// It ends with a zero and lives as long as it is used, or is NULL.
pub(crate) unsafe fn text<'a>(string: *const c_char) -> Result<&'a str, Failure> {
    if string.is_null() {
        return Err(null("a string"));
    }
    // SAFETY: it is not NULL, and the caller promises the rest.
    let string = unsafe { CStr::from_ptr(string) };
    string.to_str().map_err(|_| Failure::of(Code::Invalid, "a string is not UTF-8"))
}

/// Bytes.
///
/// # Safety
/// There are so many, and they live as long as they are used, or it is NULL.
pub(crate) unsafe fn bytes<'a>(start: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(null("a key or a value"));
    }
    if isize::try_from(len).is_err() {
        return Err(Failure::of(Code::Invalid, format!("{len} bytes are more than there can be")));
    }
    // SAFETY: it is not NULL, the length is possible, and the caller promises that the bytes are there.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), len) })
}

/// That there is a place for a handle, before anything is done for it.
///
/// # Errors
/// `Invalid`.
pub(crate) fn check_place<T>(out: *mut *mut T) -> Result<(), Failure> {
    if out.is_null() { Err(null("the place for a handle")) } else { Ok(()) }
}

/// Gives a handle to the caller.
///
/// # Safety
/// `out` can be written, or is NULL.
pub(crate) unsafe fn give<T>(out: *mut *mut T, handle: T) -> Result<(), Failure> {
    check_place(out)?;
    // SAFETY: the caller promises that it can be written.
    unsafe { out.write(Box::into_raw(Box::new(handle))) };
    Ok(())
}

/// A handle, to look at.
///
/// # Safety
/// It is of [`give`] and was not taken, or is NULL.
pub(crate) unsafe fn borrow<'a, T>(handle: *mut T) -> Result<&'a T, Failure> {
    // SAFETY: the caller promises that it points to a live box, or is NULL.
    unsafe { handle.as_ref() }.ok_or_else(|| null("a handle"))
}

/// A handle, to change.
///
/// # Safety
/// As [`borrow`], and nobody else uses it meanwhile.
pub(crate) unsafe fn borrow_mut<'a, T>(handle: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller promises that it points to a live box that nobody else uses, or is NULL.
    unsafe { handle.as_mut() }.ok_or_else(|| null("a handle"))
}

/// Takes a handle back.
///
/// # Safety
/// As [`borrow`]; nobody uses it afterwards.
pub(crate) unsafe fn take<T>(handle: *mut T) -> Result<Box<T>, Failure> {
    if handle.is_null() {
        return Err(null("a handle"));
    }
    // SAFETY: the caller promises that it is the pointer of a box that nobody has taken.
    Ok(unsafe { Box::from_raw(handle) })
}

/// Shows bytes that somebody else keeps.
///
/// # Safety
/// Both can be written, or are NULL.
pub(crate) unsafe fn show(bytes: &[u8], start: *mut *const c_void, len: *mut usize) -> Result<(), Failure> {
    if start.is_null() || len.is_null() {
        return Err(null("the place for a key or a value"));
    }
    // SAFETY: neither is NULL, and the caller promises that they can be written.
    unsafe {
        start.write(bytes.as_ptr().cast());
        len.write(bytes.len());
    }
    Ok(())
}

/// Gives a copy of bytes to the caller.
///
/// # Safety
/// Both can be written, or are NULL.
pub(crate) unsafe fn give_bytes(
    bytes: &[u8],
    start: *mut *mut c_void,
    len: *mut usize,
) -> Result<(), Failure> {
    if start.is_null() || len.is_null() {
        return Err(null("the place for a value"));
    }
    let copy: Box<[u8]> = bytes.into();
    // SAFETY: neither is NULL, and the caller promises that they can be written.
    unsafe {
        len.write(copy.len());
        start.write(Box::into_raw(copy).cast());
    }
    Ok(())
}

/// Gives a copy of what a look-up found; an error if that is nothing.
///
/// # Safety
/// As [`give_bytes`].
pub(crate) unsafe fn give_found(
    found: Option<&[u8]>,
    start: *mut *mut c_void,
    len: *mut usize,
) -> Result<(), Failure> {
    let found = found.ok_or_else(|| Failure::of(Code::NotFound, "there is no such key"))?;
    // SAFETY: as the caller promises.
    unsafe { give_bytes(found, start, len) }
}

/// Takes back what [`give_bytes`] gave.
///
/// # Safety
/// Both are as they were given, once, or `start` is NULL.
pub(crate) unsafe fn free_bytes(start: *mut c_void, len: usize) {
    if !start.is_null() {
        let slice = ptr::slice_from_raw_parts_mut(start.cast::<u8>(), len);
        // SAFETY: the caller promises that this is the pointer of a boxed slice of that length.
        drop(unsafe { Box::from_raw(slice) });
    }
}
