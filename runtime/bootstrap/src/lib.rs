//! How ranks find and authenticate one another: stores, handshake, descriptor passing.
