//! Numbers of the commands: `_IO(TYPE, command)`, so that a struct may grow under its number.

/// Type byte.
pub const TYPE: u8 = 0xDE;

/// Low byte of each number.
pub mod command {
    /// Low byte of [`super::QUERY`].
    pub const QUERY: u8 = 0x00;
    /// Low byte of [`super::RING_SETUP`].
    pub const RING_SETUP: u8 = 0x01;
    /// Low byte of [`super::ENTER`].
    pub const ENTER: u8 = 0x02;
    /// Low byte of [`super::SUBMIT`].
    pub const SUBMIT: u8 = 0x03;
    /// Low byte of [`super::REGISTER_MEMORY`].
    pub const REGISTER_MEMORY: u8 = 0x04;
    /// Low byte of [`super::REGISTER_DMABUF`].
    pub const REGISTER_DMABUF: u8 = 0x05;
    /// Low byte of [`super::EXPORT`].
    pub const EXPORT: u8 = 0x06;
    /// Low byte of [`super::IMPORT`].
    pub const IMPORT: u8 = 0x07;
    /// Low byte of [`super::UNREGISTER`].
    pub const UNREGISTER: u8 = 0x08;
    /// Low byte of [`super::ATTACH_EVENTFD`].
    pub const ATTACH_EVENTFD: u8 = 0x09;
    /// Low byte of [`super::ATTACH_PROXY`].
    pub const ATTACH_PROXY: u8 = 0x0a;
}

/// `_IO` of `asm-generic/ioctl.h`: neither size nor direction.
const fn io(command: u8) -> u32 {
    (TYPE as u32) << 8 | command as u32
}

/// Takes [`super::Query`].
pub const QUERY: u32 = io(command::QUERY);
/// Takes [`super::RingSetup`].
pub const RING_SETUP: u32 = io(command::RING_SETUP);
/// Takes [`super::Enter`].
pub const ENTER: u32 = io(command::ENTER);
/// Takes [`super::Submit`].
pub const SUBMIT: u32 = io(command::SUBMIT);
/// Takes [`super::RegisterMemory`].
pub const REGISTER_MEMORY: u32 = io(command::REGISTER_MEMORY);
/// Takes [`super::RegisterDmabuf`].
pub const REGISTER_DMABUF: u32 = io(command::REGISTER_DMABUF);
/// Takes [`super::Export`].
pub const EXPORT: u32 = io(command::EXPORT);
/// Takes [`super::Import`].
pub const IMPORT: u32 = io(command::IMPORT);
/// Takes [`super::Unregister`].
pub const UNREGISTER: u32 = io(command::UNREGISTER);
/// Takes [`super::AttachEventfd`].
pub const ATTACH_EVENTFD: u32 = io(command::ATTACH_EVENTFD);
/// Takes [`super::AttachProxy`].
pub const ATTACH_PROXY: u32 = io(command::ATTACH_PROXY);
