//! How many connections there are, in all and of each client.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Limits, client_of};

/// How many are told at a time that there is no permit. The others are cut without a word.
const REFUSED_AT_A_TIME: usize = 128;

/// How many there may be, and who has a permit.
pub(crate) struct ConnectionLimits {
    connections: usize,
    by_address: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    served: usize,
    refused: usize,
    clients: HashMap<IpAddr, usize>,
}

/// The place of a connection, which is free again when this is dropped.
pub(super) struct Permit {
    connection_limits: Arc<ConnectionLimits>,
    client: IpAddr,
    /// Why the connection is to be refused, if it is.
    pub full: Option<Full>,
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    All,
    OfClient,
}

impl Full {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::All => "the gateway has as many connections as it may have: try again later",
            Self::OfClient => {
                "the gateway has as many connections as it may have from one address: try again later"
            }
        }
    }
}

impl ConnectionLimits {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let &Limits { connections, by_address, .. } = limits;
        Arc::new(Self { connections, by_address, taken: Mutex::default() })
    }

    /// How many connections are being served.
    pub(crate) fn taken(&self) -> usize {
        self.lock().served
    }

    /// A permit for a connection from this address, to be served or to be refused. Without one it is to be cut.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Result<Permit, Full> {
        let client = client_of(address);
        let mut taken = self.lock();
        let of_client = taken.clients.get(&client).copied().unwrap_or_default();
        let full = match () {
            () if of_client >= self.by_address => Some(Full::OfClient),
            () if taken.served >= self.connections => Some(Full::All),
            () => None,
        };
        match full {
            None => {
                taken.served += 1;
                taken.clients.insert(client, of_client + 1);
            }
            Some(full) if taken.refused >= REFUSED_AT_A_TIME => return Err(full),
            Some(_) => taken.refused += 1,
        }
        Ok(Permit { connection_limits: Arc::clone(self), client, full })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.connection_limits.lock();
        if self.full.is_some() {
            taken.refused -= 1;
            return;
        }
        taken.served -= 1;
        if let Some(count) = taken.clients.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                taken.clients.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mk_limits(connections: usize, by_address: usize) -> Arc<ConnectionLimits> {
        ConnectionLimits::new(&Limits { connections, by_address, ..Limits::default() })
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn full(permit: &Result<Permit, Full>) -> Option<Full> {
        permit.as_ref().map_or_else(|full| Some(*full), |permit| permit.full)
    }

    #[test]
    fn a_permit_is_free_again_when_its_connection_ends() {
        let connection_limits = mk_limits(2, 2);
        let first = connection_limits.take(ip("192.0.2.1"));
        let second = connection_limits.take(ip("192.0.2.2"));
        assert_eq!((full(&first), full(&second)), (None, None));
        assert_eq!(full(&connection_limits.take(ip("192.0.2.3"))), Some(Full::All));
        drop(first);
        assert_eq!(full(&connection_limits.take(ip("192.0.2.3"))), None);
        drop(second);
        let taken = connection_limits.lock();
        assert!(taken.clients.is_empty() && taken.served == 0 && taken.refused == 0);
    }

    #[test]
    fn one_client_does_not_take_all_connections() {
        let connection_limits = mk_limits(10, 2);
        let _held = [connection_limits.take(ip("192.0.2.1")), connection_limits.take(ip("::ffff:192.0.2.1"))];
        assert_eq!(full(&connection_limits.take(ip("192.0.2.1"))), Some(Full::OfClient));
        assert_eq!(full(&connection_limits.take(ip("192.0.2.2"))), None);
        let _held = [connection_limits.take(ip("2001:db8::1")), connection_limits.take(ip("2001:db8::2"))];
        assert_eq!(
            full(&connection_limits.take(ip("2001:db8::ffff:0:0:1"))),
            Some(Full::OfClient),
            "the same 64 bits"
        );
        assert_eq!(full(&connection_limits.take(ip("2001:db8:0:1::1"))), None);
    }

    #[test]
    fn only_some_are_told_that_there_is_no_seat() {
        let connection_limits = mk_limits(0, 1);
        let refused: Vec<_> =
            (0..REFUSED_AT_A_TIME).map(|_| connection_limits.take(ip("192.0.2.1"))).collect();
        assert!(
            refused.iter().all(|permit| permit.as_ref().is_ok_and(|permit| permit.full == Some(Full::All)))
        );
        assert!(connection_limits.take(ip("192.0.2.1")).is_err_and(|full| full == Full::All));
        drop(refused);
        assert!(connection_limits.take(ip("192.0.2.1")).is_ok());
    }
}
