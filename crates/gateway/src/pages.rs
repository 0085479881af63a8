//! Lists that are read page by page, each from the moment at which its first page was read.
//!
//! What was selected stays pinned under a token until it is read to its end, or for a few minutes: no page repeats or
//! leaves out an object, whatever changes meanwhile. What is pinned costs a handle for each object, and is bounded for
//! each caller. A token also says after which object it goes on, so that a list that is no longer pinned can be
//! continued from what there is now, as with an API server.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use informer_model::{ObjectKey, ResourceVersion, Status};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rand::RngExt;
use rand_pcg::Pcg32;
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

use crate::{
    query::selection::{Mark, Objects, Selection},
    work::Account,
};

/// How long a list stays after it was last read from.
const KEEP: Duration = Duration::from_secs(300);
/// How long it stays in all. It keeps objects in memory that have been replaced since, and nothing else bounds how many.
const OLDEST: Duration = Duration::from_secs(1_800);
/// How many lists, and objects in all of them, are pinned at most: of one caller, and in all.
const OF_ONE: Room = Room { lists: 64, objects: 1_000_000 };
const IN_ALL: Room = Room { lists: 1_024, objects: 4_000_000 };
/// Of how many lists that are gone the reason is remembered.
const REMEMBERED: usize = 1_024;

#[derive(Debug, Clone, Copy, Default)]
struct Room {
    lists: usize,
    objects: usize,
}

impl Room {
    fn add(&mut self, list: &Pinned) {
        self.lists += 1;
        // A snapshot is shared with everybody.
        self.objects += match &list.selection.objects {
            Objects::All(_) => 0,
            Objects::Some(objects) => objects.len(),
        };
    }

    fn exceeds(self, limit: Self) -> bool {
        self.lists > limit.lists || self.objects > limit.objects
    }
}

/// The lists that are being read.
#[derive(Default)]
pub(crate) struct Pages(Mutex<Lists>);

#[derive(Default)]
struct Lists {
    /// The one that was read from the longest ago is first.
    pinned: VecDeque<Pinned>,
    gone: VecDeque<(u128, &'static str)>,
}

struct Pinned {
    id: u128,
    account: Account,
    /// What was asked for, and what the caller may see of it: nobody else can go on with it.
    question: String,
    selection: Arc<Selection>,
    /// How many objects were told before these.
    before: usize,
    began: Instant,
    read: Instant,
}

/// A part of a selection.
pub(crate) struct Page {
    pub(crate) selection: Arc<Selection>,
    pub(crate) from: Mark,
    pub(crate) to: usize,
    /// How many objects there are in all pages together.
    pub(crate) total: usize,
    /// The version that the whole list is to be followed from.
    pub(crate) version: ResourceVersion,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<String>,
}

impl Page {
    /// How many objects come after this page.
    pub(crate) fn remaining(&self) -> usize {
        self.selection.objects.len().saturating_sub(self.to)
    }
}

/// What somebody asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) account: &'a Account,
    /// The query, the same for everybody who asks it.
    pub(crate) query: &'a str,
    /// The same, with what the caller may see.
    pub(crate) question: &'a str,
    pub(crate) limit: Option<usize>,
}

/// Where a list goes on.
#[derive(Debug)]
pub(crate) struct Token {
    id: u128,
    from: usize,
    version: ResourceVersion,
    query: String,
    after: ObjectKey,
}

/// What comes of a token.
pub(crate) enum Next {
    Page(Page),
    /// The list is no longer pinned, for this reason.
    Gone(&'static str),
}

impl Pages {
    /// The first page of a selection: all of it, where there is no limit. With a token, the selection is what comes after
    /// it.
    pub(crate) fn first(&self, asked: Asked<'_>, selection: Selection, goes_on: Option<&Token>) -> Page {
        let list = Pinned {
            id: rand::make_rng::<Pcg32>().random(),
            account: asked.account.clone(),
            question: asked.question.to_owned(),
            selection: Arc::new(selection),
            before: goes_on.map_or(0, |token| token.from),
            began: Instant::now(),
            read: Instant::now(),
        };
        let version = goes_on.map_or_else(|| list.selection.version.clone(), |token| token.version.clone());
        let page = list.page(Mark::default(), version, asked);
        if page.next.is_some() {
            self.lists().pin(list);
        }
        page
    }

    /// The page that begins where an earlier one said.
    pub(crate) fn next(&self, asked: Asked<'_>, token: &Token) -> Next {
        let mut lists = self.lists();
        let Some(at) = lists.pinned.iter().position(|list| list.id == token.id) else {
            let known = lists.gone.iter().find(|(id, _)| *id == token.id).map(|(_, why)| *why);
            return Next::Gone(known.unwrap_or("the gateway was started anew, or it was read long ago"));
        };
        let from = match token.from.checked_sub(lists.pinned[at].before) {
            Some(from) if lists.pinned[at].question == asked.question => from,
            _ => return Next::Gone("what you may see has changed since it was begun"),
        };
        let Some(mut list) = lists.pinned.remove(at) else {
            return Next::Gone("it was not found");
        };
        let from = Mark { at: from, after: Some(token.after.clone()) };
        let page = list.page(from, token.version.clone(), asked);
        // What has been read to its end is not kept.
        if page.next.is_some() {
            list.read = Instant::now();
            lists.pinned.push_back(list);
        }
        Next::Page(page)
    }

    /// Lets go of what has not been read from in a long time.
    pub(crate) fn sweep(&self) {
        drop(self.lists());
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while lists.pinned.front().is_some_and(|list| list.read.elapsed() > KEEP) {
            lists.unpin(0, "it is kept for five minutes after it was last read from");
        }
        while let Some(old) = lists.pinned.iter().position(|list| list.began.elapsed() > OLDEST) {
            lists.unpin(old, "it is kept for half an hour in all");
        }
        lists
    }
}

impl Pinned {
    fn page(&self, from: Mark, version: ResourceVersion, asked: Asked<'_>) -> Page {
        let objects = &self.selection.objects;
        let all = objects.len();
        let to = asked.limit.map_or(all, |limit| from.at.saturating_add(limit)).min(all);
        let mut end = from.clone();
        if to < all {
            objects.read(&mut end, to, |_| true);
        }
        let next = end.after.filter(|_| to < all).map(|after| {
            let (id, from) = (self.id, self.before.saturating_add(to));
            Token { id, from, version: version.clone(), query: digest_of(asked.query), after }.to_string()
        });
        let total = self.before.saturating_add(all);
        Page { selection: Arc::clone(&self.selection), from, to, total, version, next }
    }
}

impl Lists {
    fn pin(&mut self, list: Pinned) {
        self.pinned.push_back(list);
        let mut rooms: HashMap<&Account, Room> = HashMap::new();
        let mut all = Room::default();
        for list in &self.pinned {
            rooms.entry(&list.account).or_default().add(list);
            all.add(list);
        }
        // Whoever has the most makes room, with what was read from the longest ago.
        let (owner, why) = match self.pinned.back().map(|list| &list.account) {
            Some(own) if rooms.get(own).is_some_and(|room| room.exceeds(OF_ONE)) => {
                (own.clone(), "you have begun more lists than are kept for one caller")
            }
            _ if all.exceeds(IN_ALL) => {
                let most = rooms.iter().max_by_key(|(_, room)| (room.objects, room.lists));
                let Some((most, _)) = most else { return };
                ((*most).clone(), "more lists are being read than the gateway keeps")
            }
            _ => return,
        };
        // The one that came last is being answered.
        let others = self.pinned.len() - 1;
        if let Some(first) = self.pinned.iter().take(others).position(|list| list.account == owner) {
            self.unpin(first, why);
        }
    }

    fn unpin(&mut self, at: usize, why: &'static str) {
        if let Some(list) = self.pinned.remove(at) {
            self.gone.push_back((list.id, why));
            if self.gone.len() > REMEMBERED {
                self.gone.pop_front();
            }
        }
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, from, version, query, after } = self;
        let version = version.to_string();
        let [version, after] =
            [&version, after.as_str()].map(|text| utf8_percent_encode(text, NON_ALPHANUMERIC));
        write!(f, "{id:032x}.{from}.{version}.{query}.{after}")
    }
}

impl Token {
    /// Reads a token that was given for this query. 400 for another query, or something else.
    pub(crate) fn read(text: &str, query: &str) -> Result<Self, Status> {
        let token = Self::parse(text).ok_or_else(|| {
            Status::bad_request(format!("continue={text:?} is not a token that this gateway has given"))
        })?;
        if token.query != digest_of(query) {
            return Err(Status::bad_request(
                "continue= belongs to another query: repeat all other parameters as they were",
            ));
        }
        Ok(token)
    }

    /// The object after which the list goes on.
    pub(crate) fn after(&self) -> &ObjectKey {
        &self.after
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let [id, from, version, query, after] = [(); 5].map(|()| parts.next());
        let decoded = |text| percent_decode_str(text).decode_utf8().ok();
        let token = Self {
            id: u128::from_str_radix(id?, 16).ok()?,
            from: from?.parse().ok()?,
            version: ResourceVersion::from(&*decoded(version?)?),
            query: query?.to_owned(),
            after: decoded(after?)?.parse().ok()?,
        };
        parts.next().is_none().then_some(token)
    }
}

/// A short form of a query, the same in every process.
fn digest_of(query: &str) -> String {
    let digest = digest(&SHA256, query.as_bytes());
    digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
