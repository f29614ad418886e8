//! Addresses near this machine: its own, and those of the networks on its interfaces. Services
//! there may trust their neighbours, also where an address is public.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::sys::socket::SockaddrStorage;

/// Wider networks are no neighbourhood: a tunnel may have an interface for half the internet. Only
/// the own address counts there.
const WIDEST_V4: u32 = 8;
const WIDEST_V6: u32 = 16;
/// Neighbours share 64 bits, also where an interface was given a single address.
const NARROWEST_V6: u32 = 64;

/// The networks of this machine's interfaces at a moment.
#[derive(Debug, Clone)]
pub(super) struct Nearby {
    networks: Vec<Network>,
    /// Asks the system's routes.
    leads_here: fn(IpAddr) -> bool,
}

/// The addresses that begin like `address`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    address: IpAddr,
    bits: u32,
}

impl Nearby {
    /// Asks the system each time, because addresses come and go.
    pub(super) fn now() -> io::Result<Self> {
        let interfaces = getifaddrs()?;
        Ok(Nearby {
            networks: interfaces.flat_map(networks).collect(),
            leads_here,
        })
    }

    #[cfg(test)]
    pub(super) fn of(networks: &[(&str, u32)]) -> Self {
        let network = |(address, bits): &(&str, u32)| Network::new(address.parse().unwrap(), *bits);
        Nearby {
            networks: networks.iter().map(network).collect(),
            leads_here: |_| false,
        }
    }

    pub(super) fn has(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.has(address)) || (self.leads_here)(address)
    }
}

impl Network {
    fn new(address: IpAddr, bits: u32) -> Self {
        let bits = match address {
            IpAddr::V4(_) if bits < WIDEST_V4 => 32,
            IpAddr::V4(_) => bits.min(32),
            IpAddr::V6(_) if bits < WIDEST_V6 => 128,
            IpAddr::V6(_) => bits.min(NARROWEST_V6),
        };
        Network { address, bits }
    }

    fn has(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (u32::from(own) ^ u32::from(other)).leading_zeros() >= self.bits
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (u128::from(own) ^ u128::from(other)).leading_zeros() >= self.bits
            }
            _ => false,
        }
    }
}

/// The network of an address, and the far end of a tunnel.
fn networks(interface: InterfaceAddress) -> impl Iterator<Item = Network> {
    let mask = interface.netmask.as_ref().and_then(ip);
    let bits = mask.map_or(u32::MAX, leading_ones);
    let own = interface.address.as_ref().and_then(ip);
    let far = interface.destination.as_ref().and_then(ip);
    let own = own.map(|address| Network::new(address, bits));
    own.into_iter()
        .chain(far.map(|address| Network::new(address, u32::MAX)))
}

fn leading_ones(mask: IpAddr) -> u32 {
    match mask {
        IpAddr::V4(mask) => u32::from(mask).leading_ones(),
        IpAddr::V6(mask) => u128::from(mask).leading_ones(),
    }
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

/// Whether the system itself takes calls to an address, such as by a route that no interface shows.
/// A call to this machine comes from the address it goes to, or from the loopback interface. No
/// packet is sent.
fn leads_here(address: IpAddr) -> bool {
    let any: SocketAddr = match address {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let from = UdpSocket::bind(any).and_then(|socket| {
        socket.connect((address, 80))?;
        socket.local_addr()
    });
    // Without a way there, no call gets there either.
    from.is_ok_and(|from| from.ip() == address || from.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(networks: &[(&str, u32)], address: &str, expected: bool) {
        let nearby = Nearby::of(networks);
        let found = nearby.has(address.parse().unwrap());
        assert_eq!(found, expected, "{address} in {networks:?}");
    }

    #[test]
    fn neighbours_are_nearby_and_the_internet_is_not() {
        let server = [("93.184.215.14", 24), ("2a01:4f8:1:2::3", 64)];
        check(&server, "93.184.215.14", true);
        check(&server, "93.184.215.1", true);
        check(&server, "93.184.214.14", false);
        check(&server, "93.184.216.0", false);
        check(&server, "2a01:4f8:1:2::3", true);
        check(&server, "2a01:4f8:1:2:ffff::1", true);
        check(&server, "2a01:4f8:1:3::3", false);
        check(&server, "1.1.1.1", false);
    }

    /// Clouds give a machine a single address; IPv6 has neighbours all the same.
    #[test]
    fn a_single_address_is_nearby_with_the_64_bits_around() {
        let cloud = [("93.184.215.14", 32), ("2a01:4f8:1:2::3", 128)];
        check(&cloud, "93.184.215.14", true);
        check(&cloud, "93.184.215.15", false);
        check(&cloud, "2a01:4f8:1:2::9", true);
        check(&cloud, "2a01:4f8:1:3::3", false);
    }

    #[test]
    fn wide_networks_count_unless_they_are_half_the_internet() {
        check(&[("93.184.215.14", 16)], "93.184.1.1", true);
        check(&[("2a01:4f8:1:2::3", 48)], "2a01:4f8:1:ffff::1", true);
        for bits in [0, 1, 7] {
            check(&[("93.184.215.14", bits)], "93.184.215.14", true);
            check(&[("93.184.215.14", bits)], "93.184.215.15", false);
        }
        check(&[("2a01:4f8:1:2::3", 0)], "2606:4700::1111", false);
    }

    proptest! {
        #[test]
        fn a_network_has_exactly_what_begins_alike(own: u32, bits in 8u32..=32, other: u32) {
            let network = Network::new(Ipv4Addr::from(own).into(), bits);
            let same = (0..bits).all(|bit| (own ^ other) >> (31 - bit) & 1 == 0);
            prop_assert_eq!(network.has(Ipv4Addr::from(other).into()), same);
            let near = own ^ (other.checked_shr(bits).unwrap_or(0));
            prop_assert!(network.has(Ipv4Addr::from(near).into()));
        }
    }

    #[test]
    fn all_addresses_of_this_very_machine_are_nearby() {
        let own: Vec<IpAddr> = getifaddrs()
            .unwrap()
            .filter_map(|interface| ip(interface.address.as_ref()?))
            .collect();
        assert!(!own.is_empty());
        let nearby = Nearby::now().unwrap();
        for address in own {
            assert!(nearby.has(address), "{address}");
        }
    }

    /// 127.5.6.7 is on no interface: the route of the whole network leads here.
    #[test]
    fn an_address_that_only_a_route_leads_here_is_nearby() {
        assert!(leads_here("127.5.6.7".parse().unwrap()));
        assert!(!leads_here("1.1.1.1".parse().unwrap()));
        assert!(Nearby::now().unwrap().has("127.5.6.7".parse().unwrap()));
    }
}
