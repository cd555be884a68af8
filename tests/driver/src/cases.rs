//! What only the driver has.

mod arguments;
mod channels;
mod copies;
mod events;
mod hostile;
mod memory;
mod process;
mod query;
#[expect(unsafe_code, reason = "system calls that the runtime never makes")]
mod raw;
mod ring;
mod share;

/// All tests of the driver alone.
pub const ALL: &[(&str, fn())] = &[
    ("the driver says what it can", query::says_what_it_can),
    ("versions that do not fit are told", query::versions_that_do_not_fit),
    ("a query comes first", query::comes_first),
    ("lengths of arguments", arguments::lengths),
    ("unknown flags and reserved fields", arguments::unknown_and_reserved),
    ("unknown commands", arguments::unknown_commands),
    ("arguments that cannot be read or written", arguments::unreachable),
    ("rings that cannot be", ring::sizes),
    ("mappings that cannot be", ring::mappings),
    ("a lie in the ring breaks it", ring::lies),
    ("a full completion queue holds entries back", ring::no_completion_slot),
    ("copies are exact", copies::exact),
    ("copies on the ring are exact", copies::on_the_ring),
    ("fills are exact", copies::fills),
    ("signals come after the bytes", copies::signals),
    ("channels copy, or say that there are none", channels::copy),
    ("channels copy at once", channels::at_once),
    ("drains and links wait for channels", channels::ordered),
    ("a channel that halts fails its copy only", channels::halt),
    ("a lost interrupt costs time only", channels::lost_interrupt),
    ("unregistering waits for channels", channels::unregister_waits),
    ("closing waits for channels", channels::close_waits),
    ("a process killed during copies leaves nothing", channels::killed),
    ("rights and ranges are kept", memory::rights_and_ranges),
    ("a stale id names nothing", memory::stale_ids),
    ("memory that cannot be pinned", memory::not_pinned),
    ("pins are charged and given back", memory::charged),
    ("the limit of locked memory is kept", memory::limit),
    ("copies follow pages, not addresses", memory::follow_pages),
    ("exports give parts and rights", share::parts_and_rights),
    ("exports and imports that cannot be", share::refused),
    ("an export ends with its region", share::revoked),
    ("processes share memory by a file", share::between_processes),
    ("the client exports and imports", share::by_the_client),
    ("an eventfd is told", events::eventfd),
    ("poll tells", events::poll),
    ("another address space is refused", process::another_address_space),
    ("a killed process leaves nothing", process::killed),
    ("fdinfo tells", process::fdinfo),
    ("anything goes, and nothing stays", hostile::anything_goes),
    // Last: one channel fewer afterwards.
    ("a channel that hangs is given up", channels::hang),
];
