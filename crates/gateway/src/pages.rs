//! Lists that are read page by page, each from the moment at which its first page was read.
//!
//! What was selected stays pinned under a token until it is read to its end, or for a few minutes: no page repeats or
//! leaves out an object, whatever changes meanwhile. What is pinned costs a handle for each object, which is bounded for
//! each caller, and keeps objects that have been replaced since, which are bounded in all. A token also says after which
//! object it goes on, so that a list that is no longer pinned can be continued from what there is now, as with an API server.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use informer_model::{ObjectKey, ResourceVersion, Status};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rand::RngExt;
use rand_pcg::Pcg32;
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

use crate::{
    cache::room::Replaced,
    query::selection::{Mark, Selection},
    work::{Account, Work},
};

/// How long a list stays after it was last read from.
const KEEP: Duration = Duration::from_secs(300);
/// How long it stays in all.
const OLDEST: Duration = Duration::from_secs(1_800);
/// How many bytes of objects that have been replaced since may stay in memory for lists, in all. Beyond that the oldest ends.
const REPLACED: u64 = 128 << 20;
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
        self.objects += list.selection.objects.handles();
    }

    fn exceeds(self, limit: Self) -> bool {
        self.lists > limit.lists || self.objects > limit.objects
    }
}

/// The lists that are being read.
#[derive(Default)]
pub(crate) struct Pages {
    lists: Mutex<Lists>,
    work: Work,
}

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
    /// What is replaced, and how much that was when the list was begun.
    replaced: Weak<Replaced>,
    replaced_before: u64,
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
    pub(crate) replaced: &'a Arc<Replaced>,
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
    pub(crate) fn new(work: Work) -> Self {
        Self { lists: Mutex::default(), work }
    }

    /// The first page of a selection: all of it, where there is no limit. With a token, the selection is what comes after
    /// it.
    pub(crate) async fn first(
        &self,
        asked: Asked<'_>,
        selection: Selection,
        goes_on: Option<&Token>,
    ) -> Page {
        let version = goes_on.map_or_else(|| selection.version.clone(), |token| token.version.clone());
        let before = goes_on.map_or(0, |token| token.from);
        let id = rand::make_rng::<Pcg32>().random();
        let selection = Arc::new(selection);
        let part = Part { id, before, from: Mark::default(), version, selection: Arc::clone(&selection) };
        let page = part.page(asked, &self.work).await;
        if page.next.is_some() {
            let now = Instant::now();
            self.lists().pin(Pinned {
                id,
                account: asked.account.clone(),
                question: asked.question.to_owned(),
                selection,
                before,
                began: now,
                read: now,
                replaced: Arc::downgrade(asked.replaced),
                replaced_before: asked.replaced.bytes(),
            });
        }
        page
    }

    /// The page that begins where an earlier one said.
    pub(crate) async fn next(&self, asked: Asked<'_>, token: &Token) -> Next {
        let part = match self.lists().part(asked, token) {
            Ok(part) => part,
            Err(why) => return Next::Gone(why),
        };
        // Nobody waits for another one's page.
        let page = part.page(asked, &self.work).await;
        self.lists().was_read(token.id, page.next.is_some());
        Next::Page(page)
    }

    /// Lets go of what has not been read from in a long time, and of what keeps too much.
    pub(crate) fn sweep(&self) {
        self.lists().give_up_replaced();
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        while lists.pinned.front().is_some_and(|list| now - list.read > KEEP) {
            lists.unpin(0, "it is kept for five minutes after it was last read from");
        }
        while let Some(old) = lists.pinned.iter().position(|list| now - list.began > OLDEST) {
            lists.unpin(old, "it is kept for half an hour in all");
        }
        lists
    }
}

/// What a page is taken from.
struct Part {
    id: u128,
    before: usize,
    from: Mark,
    version: ResourceVersion,
    selection: Arc<Selection>,
}

impl Part {
    async fn page(self, asked: Asked<'_>, work: &Work) -> Page {
        let Self { id, before, from, version, selection } = self;
        let all = selection.objects.len();
        let to = asked.limit.map_or(all, |limit| from.at.saturating_add(limit)).min(all);
        let after = match to < all {
            true => {
                let (micros, part) = (selection.objects.micros_to_end(&from, to), Arc::clone(&selection));
                let from = from.clone();
                work.run(asked.account, micros, move || part.objects.last(from, to)).await
            }
            false => None,
        };
        let next = after.map(|after| {
            let (from, query) = (before.saturating_add(to), digest_of(asked.query));
            Token { id, from, version: version.clone(), query, after }.to_string()
        });
        Page { selection, from, to, total: before.saturating_add(all), version, next }
    }
}

impl Lists {
    /// What a token goes on with, or why it cannot.
    fn part(&self, asked: Asked<'_>, token: &Token) -> Result<Part, &'static str> {
        let Some(list) = self.pinned.iter().find(|list| list.id == token.id) else {
            let known = self.gone.iter().find(|(id, _)| *id == token.id).map(|(_, why)| *why);
            return Err(known.unwrap_or("the gateway was started anew, or it was read long ago"));
        };
        let at = token.from.checked_sub(list.before).filter(|_| list.question == asked.question);
        let at = at.ok_or("what you may see has changed since it was begun")?;
        let from = Mark { at, after: Some(token.after.clone()) };
        let selection = Arc::clone(&list.selection);
        Ok(Part { id: list.id, before: list.before, from, version: token.version.clone(), selection })
    }

    /// A page of a list was read. What has been read to its end is not kept.
    fn was_read(&mut self, id: u128, goes_on: bool) {
        let at = self.pinned.iter().position(|list| list.id == id);
        if let Some(mut list) = at.and_then(|at| self.pinned.remove(at))
            && goes_on
        {
            list.read = Instant::now();
            self.pinned.push_back(list);
        }
    }

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

    /// Ends lists, the oldest first, until what was replaced since the others were begun is little enough.
    fn give_up_replaced(&mut self) {
        while let Some(at) = self.pinned.iter().position(|list| list.replaced.strong_count() == 0) {
            self.unpin(at, "its resource is no longer kept in memory");
        }
        while let Some(at) = self.keeps_too_much() {
            self.unpin(at, "too many objects have changed since it was begun");
        }
    }

    /// The list that keeps the most, where all together keep too much. What the younger ones of a resource keep, the oldest
    /// one keeps as well.
    fn keeps_too_much(&self) -> Option<usize> {
        let mut oldest: HashMap<*const Replaced, (u64, usize)> = HashMap::new();
        for (at, list) in self.pinned.iter().enumerate() {
            let now = list.replaced.upgrade().map_or(0, |replaced| replaced.bytes());
            let kept = (now.saturating_sub(list.replaced_before), at);
            let most = oldest.entry(list.replaced.as_ptr()).or_insert(kept);
            *most = kept.max(*most);
        }
        let kept: u64 = oldest.values().map(|(kept, _)| kept).sum();
        (kept > REPLACED).then(|| oldest.into_values().max()).flatten().map(|(_, at)| at)
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
