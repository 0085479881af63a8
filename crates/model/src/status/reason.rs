//! The reasons of failures and their HTTP codes.

use std::fmt;

/// Each reason once: its name, its text, its code. Of several reasons with one code the first is the one that
/// the code stands for when it comes without a reason.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $code:literal;)*) => {
        /// Why a request failed, in the words of Kubernetes.
        ///
        /// ```
        /// use informer_model::Reason;
        ///
        /// assert_eq!(Reason::from("Expired"), Reason::Expired);
        /// assert_eq!(Reason::Expired.code(), Some(410));
        /// assert_eq!(Reason::of_code(410), Some(Reason::Gone));
        /// assert_eq!(Reason::from("Tired"), Reason::Other("Tired".into()));
        /// ```
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
            /// No reason was given.
            #[default]
            Unknown,
            /// A reason that Kubernetes does not have, as it came.
            Other(String),
        }

        impl Reason {
            /// The reason as it is written.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Unknown => "",
                    Self::Other(text) => text,
                }
            }

            /// The HTTP code of a response with this reason.
            pub fn code(&self) -> Option<u16> {
                match self {
                    $(Self::$name => Some($code),)*
                    Self::Unknown | Self::Other(_) => None,
                }
            }

            /// The reason that an HTTP code stands for when nothing more is known.
            pub fn of_code(code: u16) -> Option<Self> {
                [$(Self::$name),*].into_iter().find(|reason| reason.code() == Some(code))
            }
        }

        impl From<&str> for Reason {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$name,)*
                    "" => Self::Unknown,
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        #[cfg(test)]
        pub(super) const ALL: &[Reason] = &[$(Reason::$name),*];
    };
}

reasons! {
    /// The request makes no sense and never will.
    BadRequest = "BadRequest", 400;
    /// The server does not know who the client is.
    Unauthorized = "Unauthorized", 401;
    /// The client may not do this.
    Forbidden = "Forbidden", 403;
    /// There is no such object or resource.
    NotFound = "NotFound", 404;
    /// The resource has no such verb.
    MethodNotAllowed = "MethodNotAllowed", 405;
    /// The server has none of the formats that the client accepts.
    NotAcceptable = "NotAcceptable", 406;
    /// The object was changed by somebody else, or is in a state that does not allow this.
    Conflict = "Conflict", 409;
    /// There is an object of that name.
    AlreadyExists = "AlreadyExists", 409;
    /// What was asked for is no longer there.
    Gone = "Gone", 410;
    /// The version asked for is too old.
    Expired = "Expired", 410;
    /// The body is too large.
    RequestEntityTooLarge = "RequestEntityTooLarge", 413;
    /// The server does not read the format of the body.
    UnsupportedMediaType = "UnsupportedMediaType", 415;
    /// The object breaks the rules of its kind.
    Invalid = "Invalid", 422;
    /// The client is to come back later.
    TooManyRequests = "TooManyRequests", 429;
    /// Something broke in the server.
    InternalError = "InternalError", 500;
    /// The server is not able to do this at the moment; the client is to try again.
    ServerTimeout = "ServerTimeout", 500;
    /// The server is not able to read from its storage.
    StoreReadError = "StorageReadError", 500;
    /// The server is not able to serve this at the moment.
    ServiceUnavailable = "ServiceUnavailable", 503;
    /// It took longer than allowed.
    Timeout = "Timeout", 504;
}

impl Reason {
    /// Whether no reason was given.
    pub fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// Whether this is one that Kubernetes has.
    pub fn is_known(&self) -> bool {
        self.code().is_some()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
