//! A server that gives every request the same answer, whatever it is, on a real socket.

use std::{
    fmt::Write as _,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use futures_util::StreamExt;
use informer::{
    Object,
    source::{ListItem, ListOptions, ListWatch, SourceError, WatchItem},
};

/// An answer. Without a length: the end of the connection is the end of the body.
#[derive(Clone)]
pub(crate) struct Canned {
    code: u16,
    headers: String,
    body: Vec<u8>,
}

impl Canned {
    pub(crate) fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, body).header("content-type", "application/json")
    }

    pub(crate) fn new(code: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { code, headers: "connection: close\r\n".to_owned(), body: body.into() }
    }

    pub(crate) fn code(mut self, code: u16) -> Self {
        self.code = code;
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        write!(self.headers, "{name}: {value}\r\n").unwrap();
        self
    }

    /// Serves it until the test ends.
    pub(crate) fn serve(self) -> CannedServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                self.answer(connection, &seen);
            }
        });
        CannedServer { address, requests }
    }

    fn answer(&self, mut connection: TcpStream, seen: &Mutex<Vec<String>>) {
        let mut request = Vec::new();
        let mut buffer = [0; 1024];
        while !request.ends_with(b"\r\n\r\n") {
            match connection.read(&mut buffer) {
                Ok(read @ 1..) => request.extend_from_slice(&buffer[..read]),
                _ => return,
            }
        }
        seen.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
        // A client that has seen enough hangs up.
        let _ =
            connection.write_all(format!("HTTP/1.1 {} Canned\r\n{}\r\n", self.code, self.headers).as_bytes());
        let _ = connection.write_all(&self.body);
    }
}

pub(crate) struct CannedServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl CannedServer {
    pub(crate) fn client(&self) -> kube::Client {
        client_of(self.address)
    }

    /// The heads of the requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// A client of plain HTTP that tries everything once.
pub(crate) fn client_of(address: SocketAddr) -> kube::Client {
    let mut config = kube::Config::new(format!("http://{address}").parse().expect("a URI"));
    config.default_retry = false;
    kube::Client::try_from(config).expect("a client")
}

/// All that comes of a list, and the error that ends it, if one does.
pub(crate) async fn list<K>(source: &impl ListWatch<K>) -> (Vec<ListItem<K>>, Option<SourceError>) {
    match source.list(ListOptions::default()).await {
        Ok(stream) => drain(stream).await,
        Err(error) => (Vec::new(), Some(error)),
    }
}

/// All that comes of a watch, and the error that ends it, if one does.
pub(crate) async fn watch<K>(
    source: &impl ListWatch<K>,
    options: ListOptions,
) -> (Vec<WatchItem<K>>, Option<SourceError>) {
    match source.watch(options).await {
        Ok(stream) => drain(stream).await,
        Err(error) => (Vec::new(), Some(error)),
    }
}

async fn drain<T>(
    mut stream: impl futures_util::Stream<Item = Result<T, SourceError>> + Unpin,
) -> (Vec<T>, Option<SourceError>) {
    let mut items = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(item) => items.push(item),
            Err(error) => {
                assert!(stream.next().await.is_none(), "nothing comes after an error");
                return (items, Some(error));
            }
        }
    }
    (items, None)
}

/// The objects of a list.
pub(crate) fn objects<K>(items: &[ListItem<K>]) -> Vec<Object<K>> {
    let objects = items.iter().filter_map(|item| match item {
        ListItem::Object(object) => Some(object.clone()),
        _ => None,
    });
    objects.collect()
}

/// A line for each item of a list: `shop/web-0@7`, `! shop/web-1`, `end 8`.
pub(crate) fn lines<K>(items: &[ListItem<K>]) -> Vec<String> {
    let line = |item: &ListItem<K>| match item {
        ListItem::Object(object) => format!("{object:?}"),
        ListItem::Unusable(unusable) => format!("! {}", unusable.name),
        ListItem::End(end) => format!("end {}", end.version),
    };
    items.iter().map(line).collect()
}

/// A line for each item of a watch.
pub(crate) fn events<K>(items: &[WatchItem<K>]) -> Vec<String> {
    let line = |item: &WatchItem<K>| match item {
        WatchItem::Object(change, object) => format!("{change:?} {object:?}"),
        WatchItem::Unusable(change, unusable) => format!("{change:?} ! {}", unusable.name),
        WatchItem::Bookmark { version, initial_events_end } => {
            format!("Bookmark {version}{}", if *initial_events_end { " initial" } else { "" })
        }
        WatchItem::Error(status) => format!("Error {} {status}", status.code),
        WatchItem::Foreign(what) => format!("Foreign {what}"),
    };
    items.iter().map(line).collect()
}
