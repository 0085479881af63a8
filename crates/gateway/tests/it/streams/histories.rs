//! Followers of one long random history: what they know from a stream is what a list would tell.
//!
//! `INFORMER_SEED=N` replays the run of seed `N`.

use std::{collections::BTreeMap, time::Duration};

use informer_testing::{Deadline, seed};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::events::{Event, Events, MAPS, Rig, mk_map};
use crate::support::query;

/// What a client knows: texts by key.
type Known = BTreeMap<String, String>;

/// A client of a part of the objects, which comes and goes.
struct Client {
    path: String,
    stream: Option<Events>,
    id: String,
    known: Known,
    resets: usize,
}

fn entry(object: &Value) -> (String, String) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).expect("a text");
    (format!("{}/{}", text("/metadata/namespace"), text("/metadata/name")), text("/data/text").to_owned())
}

impl Client {
    fn new(parameters: &[(&str, &str)]) -> Self {
        let path = query(MAPS, parameters);
        Self { path, stream: None, id: String::new(), known: Known::new(), resets: 0 }
    }

    async fn connect(&mut self, rig: &Rig) {
        if self.stream.is_none() {
            self.stream = Some(rig.open(&self.path, &[("last-event-id", &self.id)]).await);
        }
    }

    /// Reads what there is now: until nothing comes for longer than the longest interval.
    async fn read(&mut self) {
        while let Some(stream) = &mut self.stream {
            match timeout(Duration::from_secs(2), stream.next()).await {
                Ok(event) => self.hear(event.expect("it ends with a word")),
                Err(_) => return,
            }
        }
    }

    fn hear(&mut self, event: Event) {
        match &*event.name {
            "snapshot" | "reset" => {
                self.resets += usize::from(event.name == "reset");
                self.known.clear();
            }
            "items" => self.known.extend(event.data["items"].as_array().expect("items").iter().map(entry)),
            "synced" | "" => {}
            "deleted" => {
                let (key, _) = entry(&event.data["object"]);
                assert!(self.known.remove(&key).is_some(), "{key} was not known: {event:?}");
            }
            "added" => {
                let (key, text) = entry(&event.data["object"]);
                assert!(self.known.insert(key, text).is_none(), "it was known: {event:?}");
            }
            "modified" => {
                let (key, text) = entry(&event.data["object"]);
                assert!(self.known.insert(key, text).is_some(), "it was not known: {event:?}");
            }
            "end" => self.stream = None,
            other => panic!("{other} is no event"),
        }
        if let Some(id) = event.id {
            self.id = id;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_stream_tells_adds_up_to_what_there_is() {
    let seed = seed();
    println!("replay with INFORMER_SEED={seed}");
    let mut random = Pcg32::seed_from_u64(seed);
    let rig = Rig::with(|builder| builder.changes_kept(40));
    let filters: [&[(&str, &str)]; 4] = [
        &[],
        &[("labelSelector", "app=web")],
        &[("labelSelector", "app=web"), ("interval", "500ms")],
        &[("fieldSelector", "data.text in (1,2,3)"), ("namespace", "a"), ("interval", "100ms")],
    ];
    let mut clients = filters.map(Client::new);
    let mut objects: BTreeMap<String, (String, String)> = BTreeMap::new();
    for _ in 0..3_000 {
        let key = format!("{}/c-{}", ["a", "b"][random.random_range(0..2)], random.random_range(0..5));
        let (app, text) = (["web", "db"][random.random_range(0..2)], random.random_range(0..6).to_string());
        let which = random.random_range(0..clients.len());
        match random.random_range(0..20) {
            0..12 => {
                rig.server.put(mk_map(&key, json!({"app": app}), &text)).expect("a map");
                objects.insert(key, (app.to_owned(), text));
            }
            12..16 => {
                let was_there = rig.server.discard("", "configmaps", &key.parse().expect("a key"));
                assert_eq!(was_there, objects.remove(&key).is_some());
            }
            16 => clients[which].stream = None,
            17 => clients[which].connect(&rig).await,
            18 => clients[which].read().await,
            _ => tokio::time::sleep(Duration::from_millis(random.random_range(0..300))).await,
        }
    }
    // The cache may be between two watches of its own.
    let version = rig.server.version().to_string();
    let deadline = Deadline::start();
    while rig.try_open(&query(MAPS, &[("minResourceVersion", &version)]), &[]).await.is_err() {
        deadline.check("the cache has the last version");
    }
    for client in &mut clients {
        // One that was sent away in the meantime comes back.
        for _ in 0..2 {
            client.connect(&rig).await;
            client.read().await;
        }
    }
    let wanted: [fn(&str, &str, &str) -> bool; 4] = [
        |_, _, _| true,
        |_, app, _| app == "web",
        |_, app, _| app == "web",
        |key, _, text| key.starts_with("a/") && ["1", "2", "3"].contains(&text),
    ];
    for (client, wanted) in clients.iter().zip(wanted) {
        let truth = objects.iter().filter(|(key, (app, text))| wanted(key, app, text));
        let truth: Known = truth.map(|(key, (_, text))| (key.clone(), text.clone())).collect();
        assert_eq!(client.known, truth, "{} with {} resets; seed {seed}", client.path, client.resets);
    }
}
