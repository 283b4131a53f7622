//! Free ports without a race: a port stays reserved from the moment it is chosen until the cluster is dropped. The reservation is a
//! socket that is bound with SO_REUSEADDR and never listens. The kernel does not give its port to a program that asks for any free
//! port, but a program that binds this port with SO_REUSEADDR, as Go programs do, may listen on it, also after a restart.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{Context, Result};

/// A port of 127.0.0.1 that is reserved until this is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _reservation: Socket,
}

impl Port {
    /// Any free one.
    pub fn reserve() -> Result<Self> {
        Port::bind(0).context(|| "reserving a free port on 127.0.0.1".into())
    }

    /// This one if it is free, else any.
    pub fn preferably(number: u16) -> Result<Self> {
        Port::bind(number).or_else(|_| Port::reserve())
    }

    fn bind(number: u16) -> io::Result<Port> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, number)).into())?;
        let number = socket.local_addr()?.as_socket().map_or(0, |address| address.port());
        Ok(Port { number, _reservation: socket })
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_reserved_port_can_be_listened_on_by_the_one_who_knows_it_and_by_nobody_else() {
        let port = Port::reserve().unwrap();
        let others: Vec<_> = (0..1000).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        assert!(others.iter().all(|other| other.local_addr().unwrap().port() != port.number()));

        let program = TcpListener::bind(port.address()).unwrap();
        assert!(TcpListener::bind(port.address()).is_err(), "two programs listen on one port");
        drop(program);
        TcpListener::bind(port.address()).expect("a restarted program gets its port back");
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_replaced_by_another() {
        let somebody = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = somebody.local_addr().unwrap().port();
        assert_ne!(Port::preferably(taken).unwrap().number(), taken);
        let free = Port::reserve().unwrap().number();
        assert_eq!(Port::preferably(free).unwrap().number(), free);
    }
}
