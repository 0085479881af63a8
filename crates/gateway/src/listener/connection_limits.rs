//! How many connections there are, in all and of each client.

use std::{net::IpAddr, sync::Arc};

use super::{Limits, client_of};
use crate::share::{self, Full, Share, Shares};

/// How many are told at a time that there is no permit. The others are cut without a word.
const REFUSED_AT_A_TIME: usize = 128;

/// How many there may be, and who has a permit.
pub(crate) struct ConnectionLimits {
    served: Arc<Shares<IpAddr>>,
    refused: Arc<Shares<()>>,
}

/// The place of a connection, which is free again when this is dropped.
pub(super) struct Permit {
    /// Why the connection is to be refused, if it is.
    pub full: Option<Full>,
    _served: Option<Share<IpAddr>>,
    _refused: Option<Share<()>>,
}

/// What a client hears of a limit.
pub(super) fn reason(full: Full) -> &'static str {
    match full {
        Full::InAll(_) => "the gateway has as many connections as it may have: try again later",
        Full::OfOne(_) => {
            "the gateway has as many connections as it may have from one address: try again later"
        }
    }
}

impl ConnectionLimits {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let &Limits { connections, by_address, .. } = limits;
        let refused = share::Limits { of_one: REFUSED_AT_A_TIME, in_all: REFUSED_AT_A_TIME };
        Arc::new(Self {
            served: Shares::new(share::Limits { of_one: by_address, in_all: connections }),
            refused: Shares::new(refused),
        })
    }

    /// How many connections are being served.
    pub(crate) fn taken(&self) -> usize {
        self.served.held()
    }

    /// A permit for a connection from this address, to be served or to be refused. Without one it is to be cut.
    pub(super) fn take(&self, address: IpAddr) -> Result<Permit, Full> {
        match self.served.take(&client_of(address), 1) {
            Ok(share) => Ok(Permit { full: None, _served: Some(share), _refused: None }),
            Err(full) => {
                let share = self.refused.take(&(), 1).map_err(|_| full)?;
                Ok(Permit { full: Some(full), _served: None, _refused: Some(share) })
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
        assert_eq!(full(&connection_limits.take(ip("192.0.2.3"))), Some(Full::InAll(2)));
        drop(first);
        assert_eq!(full(&connection_limits.take(ip("192.0.2.3"))), None);
        drop(second);
        assert_eq!((connection_limits.taken(), connection_limits.refused.held()), (0, 0));
    }

    #[test]
    fn one_client_does_not_take_all_connections() {
        let connection_limits = mk_limits(10, 2);
        let _held = [connection_limits.take(ip("192.0.2.1")), connection_limits.take(ip("::ffff:192.0.2.1"))];
        assert_eq!(full(&connection_limits.take(ip("192.0.2.1"))), Some(Full::OfOne(2)));
        assert_eq!(full(&connection_limits.take(ip("192.0.2.2"))), None);
        let _held = [connection_limits.take(ip("2001:db8::1")), connection_limits.take(ip("2001:db8::2"))];
        assert_eq!(
            full(&connection_limits.take(ip("2001:db8::ffff:0:0:1"))),
            Some(Full::OfOne(2)),
            "the same 64 bits"
        );
        assert_eq!(full(&connection_limits.take(ip("2001:db8:0:1::1"))), None);
    }

    #[test]
    fn only_some_are_told_that_there_is_no_permit() {
        let connection_limits = mk_limits(0, 1);
        let refused: Vec<_> =
            (0..REFUSED_AT_A_TIME).map(|_| connection_limits.take(ip("192.0.2.1"))).collect();
        assert!(
            refused
                .iter()
                .all(|permit| permit.as_ref().is_ok_and(|permit| permit.full == Some(Full::InAll(0))))
        );
        assert!(connection_limits.take(ip("192.0.2.1")).is_err_and(|full| full == Full::InAll(0)));
        drop(refused);
        assert!(connection_limits.take(ip("192.0.2.1")).is_ok());
    }
}
