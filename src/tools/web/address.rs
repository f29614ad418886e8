//! Addresses of web pages: only the public internet is allowed. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether the whole internet can reach an address, so that pages there are no secret of this
/// network.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// <https://www.iana.org/assignments/iana-ipv4-special-registry>
const SPECIAL_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Shared by the customers of a carrier, and used by some clouds for services to their own
    // machines.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, with the metadata of clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // A public address of Azure with services for its own machines.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Multicast, reserved, broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let inside = |(network, bits): &(Ipv4Addr, u32)| {
        let shift = 32 - bits;
        u32::from(*network) >> shift == u32::from(address) >> shift
    };
    !SPECIAL_V4.iter().any(inside)
}

/// Only 2000::/3 is given out. Special ranges inside are excluded, and so is every form with an
/// IPv4 address inside, because a translator decides where such an address leads.
///
/// <https://www.iana.org/assignments/iana-ipv6-special-registry>
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let is_global_unicast = first & 0xe000 == 0x2000;
    // 2001::/23 holds Teredo, ORCHID and benchmarking, 2001:db8::/32 and 3fff::/20 are for
    // documents, 2002::/16 is 6to4.
    let is_special = (first == 0x2001 && (second < 0x0200 || second == 0x0db8))
        || first == 0x2002
        || (first == 0x3fff && second < 0x1000);
    is_global_unicast && !is_special
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(address: &str, expected: bool) {
        assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
    }

    #[test]
    fn only_the_public_internet_is_public() {
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.215.14",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
        ] {
            check(public, true);
        }
        for public in [
            "192.167.255.255",
            "169.253.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::200e",
            "2001:200::1",
        ] {
            check(public, true);
        }
        for own in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
        ] {
            check(own, false);
        }
        for own in [
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "198.18.0.1",
            "224.0.0.1",
        ] {
            check(own, false);
        }
        for own in [
            "240.0.0.1",
            "255.255.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "203.0.113.7",
            "198.51.100.7",
            "192.88.99.1",
        ] {
            check(own, false);
        }
        for own in [
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "fec0::1",
            "2001:db8::1",
            "3fff::1",
            "100::1",
        ] {
            check(own, false);
        }
    }

    /// Mapped, compatible, NAT64, 6to4 and Teredo forms, of private and of public addresses.
    #[test]
    fn no_ipv4_address_gets_through_in_ipv6_clothes() {
        for own in [
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::169.254.169.254",
        ] {
            check(own, false);
        }
        for own in [
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001:0:7f00:1::",
            "2001::1",
        ] {
            check(own, false);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2048, ..Default::default() })]

        /// What the standard library knows to be special is never public.
        #[test]
        fn nothing_special_is_public(v4 in any::<u32>(), v6 in any::<u128>()) {
            let v4 = Ipv4Addr::from(v4);
            if v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_multicast() || v4.is_unspecified()
                || v4.is_broadcast() || v4.is_documentation() {
                prop_assert!(!is_public(v4.into()), "{}", v4);
            }
            let v6 = Ipv6Addr::from(v6);
            if v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unique_local() || v6.is_multicast() || v6.to_ipv4().is_some() {
                prop_assert!(!is_public(v6.into()), "{}", v6);
            }
        }

        #[test]
        fn every_form_of_an_ipv4_address_is_refused(address in any::<u32>()) {
            let low = u128::from(address);
            for form in [low, 0xffff_u128 << 32 | low, 0x0064_ff9b_u128 << 96 | low, 0x2002_u128 << 112 | low << 80, 0x2001_u128 << 112 | low] {
                prop_assert!(!is_public(Ipv6Addr::from(form).into()), "{}", Ipv6Addr::from(form));
            }
        }
    }
}
