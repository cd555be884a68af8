//! The addresses that a rank publishes when ranks need the network. Pure.

use std::net::{IpAddr, SocketAddr};

use crate::Secret;
use crate::auth::{TAG_BYTES, Transcript};
use crate::network::{MAX_ADDRESSES, from_bytes};
use crate::wire::{Reader, put_block};

pub(crate) const LABEL: &str = "stepccl reach 1";

/// The bytes to publish: the addresses of `rank`, then the proof of `secret`.
pub(crate) fn sign(addresses: &[SocketAddr], name: &str, rank: u32, secret: &Secret) -> Vec<u8> {
    let mut out = Vec::new();
    for address in addresses.iter().take(MAX_ADDRESSES) {
        match address.ip() {
            IpAddr::V4(four) => put_block(&mut out, &four.octets()),
            IpAddr::V6(six) => put_block(&mut out, &six.octets()),
        }
        out.extend_from_slice(&address.port().to_le_bytes());
    }
    let tag = transcript(secret, name, rank, &out).tag();
    out.extend_from_slice(&tag);
    out
}

/// The addresses that `rank` published; what is wrong with them otherwise.
pub(crate) fn parse(
    bytes: &[u8],
    name: &str,
    rank: u32,
    secret: &Secret,
) -> Result<Vec<SocketAddr>, String> {
    let split = bytes.len().checked_sub(TAG_BYTES).ok_or("its addresses are cut off")?;
    let (fields, tag) = bytes.split_at(split);
    let proven =
        tag.try_into().is_ok_and(|tag| transcript(secret, name, rank, fields).verify(&tag));
    if !proven {
        return Err("its addresses are not proven by the job's secret".to_owned());
    }
    let mut reader = Reader::new(fields);
    let mut addresses = Vec::new();
    while !reader.rest().is_empty() {
        let address = reader.block(16).and_then(from_bytes).zip(reader.u16());
        let (ip, port) = address.ok_or("an address has 4 or 16 bytes and a port")?;
        addresses.push(SocketAddr::new(ip, port));
        if addresses.len() > MAX_ADDRESSES {
            return Err(format!("more than {MAX_ADDRESSES} addresses"));
        }
    }
    Ok(addresses)
}

fn transcript(secret: &Secret, name: &str, rank: u32, fields: &[u8]) -> Transcript {
    Transcript::new(secret, LABEL).part(name.as_bytes()).part(&rank.to_le_bytes()).part(fields)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secret() -> Secret {
        Secret::from_bytes([3; 32])
    }

    fn address() -> impl Strategy<Value = SocketAddr> {
        (any::<IpAddr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn addresses_come_back(addresses in prop::collection::vec(address(), 0..16), rank in 0u32..9) {
            let bytes = sign(&addresses, "w", rank, &secret());
            prop_assert_eq!(parse(&bytes, "w", rank, &secret()), Ok(addresses));
            prop_assert!(parse(&bytes, "w", rank + 1, &secret()).is_err());
            prop_assert!(parse(&bytes, "w", rank, &Secret::from_bytes([4; 32])).is_err());
        }

        #[test]
        fn signed_garbage_is_an_error_or_addresses(fields in prop::collection::vec(0u8..20, 0..200)) {
            let tag = transcript(&secret(), "w", 0, &fields).tag();
            let bytes = [&fields[..], &tag].concat();
            if let Ok(addresses) = parse(&bytes, "w", 0, &secret()) {
                prop_assert_eq!(sign(&addresses, "w", 0, &secret()), bytes);
            }
            prop_assert!(parse(&fields, "w", 0, &secret()).is_err());
        }
    }
}
