//! Listens on an address. `[::]` means all addresses, also where there is no IPv6.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use tokio::net::TcpListener;

/// EADDRNOTAVAIL on Linux: IPv6 is turned off for all interfaces.
const NO_SUCH_ADDRESS: i32 = 99;
/// EAFNOSUPPORT on Linux: the kernel has no IPv6.
const NO_SUCH_FAMILY: i32 = 97;

/// Begins to listen, on all IPv4 addresses if all addresses are asked for and there is no IPv6.
pub async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    listen_by(address, async |address| TcpListener::bind(address).await).await
}

async fn listen_by<T>(address: SocketAddr, bind: impl AsyncFn(SocketAddr) -> io::Result<T>) -> io::Result<T> {
    match bind(address).await {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && is_without_ipv6(&error) => {
            bind((Ipv4Addr::UNSPECIFIED, address.port()).into()).await
        }
        bound => bound,
    }
}

fn is_without_ipv6(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(NO_SUCH_ADDRESS | NO_SUCH_FAMILY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_addresses_are_those_that_there_are() {
        const IN_USE: i32 = 98;
        for (asked, ipv6, expected) in [
            ("[::]:8443", None, Ok("[::]:8443")),
            ("[::]:8443", Some(NO_SUCH_FAMILY), Ok("0.0.0.0:8443")),
            ("[::]:8443", Some(NO_SUCH_ADDRESS), Ok("0.0.0.0:8443")),
            ("[::]:8443", Some(IN_USE), Err(IN_USE)),
            ("[::1]:8443", Some(NO_SUCH_ADDRESS), Err(NO_SUCH_ADDRESS)),
            ("127.0.0.1:8443", Some(NO_SUCH_FAMILY), Ok("127.0.0.1:8443")),
        ] {
            let bind = async |address: SocketAddr| match ipv6 {
                Some(code) if address.is_ipv6() => Err(io::Error::from_raw_os_error(code)),
                _ => Ok(address.to_string()),
            };
            let bound = listen_by(asked.parse().unwrap(), bind).await;
            let bound = bound.map_err(|error| error.raw_os_error().unwrap());
            assert_eq!(bound, expected.map(str::to_owned), "{asked}");
        }
    }

    #[tokio::test]
    async fn it_listens() {
        let listener = listen("[::]:0".parse().unwrap()).await.unwrap();
        assert!(listener.local_addr().unwrap().ip().is_unspecified());
    }
}
