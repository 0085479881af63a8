use std::sync::LazyLock;

use futures_util::FutureExt;
use informer::{Object, RawObject, store};
use tokio::time::advance;

use super::*;
use crate::{access::Visible, cache::Stored, query::Query};

/// So many objects.
fn mk_selection(objects: usize) -> Selection {
    let (mut writer, store) = store::new::<Stored>();
    writer.write(|batch| {
        for n in 0..objects {
            let json = format!(r#"{{"metadata":{{"namespace":"default","name":"object-{n}"}}}}"#);
            batch.insert(Object::new(Stored::plain(RawObject::new(json).unwrap())).unwrap());
        }
        batch.set_resource_version("7".into());
    });
    Query::default().select(None, &store.snapshot(), &Visible::All)
}

fn mk_account(user: &str) -> Account {
    Account::User(user.into())
}

fn asked(account: &Account, limit: Option<usize>) -> Asked<'_> {
    static REPLACED: LazyLock<Arc<Replaced>> = LazyLock::new(Arc::default);
    Asked { account, query: "pods", question: "pods as ann", limit, replaced: &REPLACED }
}

/// The token of the second page of a new list.
async fn begin(pages: &Pages, account: &Account) -> String {
    pages.first(asked(account, Some(1)), mk_selection(3), None).await.next.unwrap()
}

/// What a token leads to: where it goes on, or why not.
async fn next(pages: &Pages, asked: Asked<'_>, token: &str) -> Result<Page, &'static str> {
    match pages.next(asked, &Token::read(token, asked.query).unwrap()).await {
        Next::Page(page) => Ok(page),
        Next::Gone(why) => Err(why),
    }
}

async fn is_kept(pages: &Pages, account: &Account, token: &str) -> bool {
    next(pages, asked(account, Some(1)), token).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_list_is_kept_for_five_minutes_after_it_was_last_read_from() {
    let (pages, ann) = (Pages::default(), mk_account("ann"));
    let token = begin(&pages, &ann).await;
    for _ in 0..3 {
        advance(KEEP).await;
        assert!(is_kept(&pages, &ann, &token).await);
    }
    advance(KEEP + Duration::from_secs(1)).await;
    pages.sweep();
    assert_eq!(pages.lists.lock().unwrap().pinned.len(), 0, "nobody has to come for it to go");
    let why = next(&pages, asked(&ann, Some(1)), &token).await.err().unwrap();
    assert!(why.contains("five minutes"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_list_is_not_kept_for_ever_however_often_it_is_read_from() {
    let (pages, ann) = (Pages::default(), mk_account("ann"));
    let token = begin(&pages, &ann).await;
    let began = Instant::now();
    while is_kept(&pages, &ann, &token).await {
        assert!(began.elapsed() <= OLDEST, "old objects stay in memory for it");
        advance(KEEP).await;
    }
    let why = next(&pages, asked(&ann, Some(1)), &token).await.err().unwrap();
    assert!(why.contains("half an hour"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn what_is_read_in_one_go_or_to_its_end_is_not_kept() {
    let (pages, ann) = (Pages::default(), mk_account("ann"));
    assert!(pages.first(asked(&ann, None), mk_selection(3), None).await.next.is_none());
    assert!(pages.first(asked(&ann, Some(3)), mk_selection(3), None).await.next.is_none());
    let token = begin(&pages, &ann).await;
    let page = next(&pages, asked(&ann, None), &token).await.unwrap();
    assert_eq!((page.from.at, page.to, page.next.is_none(), page.remaining()), (1, 3, true, 0));
    assert!(pages.lists.lock().unwrap().pinned.is_empty());
}

#[tokio::test(start_paused = true)]
async fn many_lists_of_one_caller_displace_only_that_callers_own() {
    let (pages, ann, eve) = (Pages::default(), mk_account("ann"), mk_account("eve"));
    let hers = begin(&pages, &ann).await;
    let mut tokens = Vec::new();
    for _ in 0..300 {
        tokens.push(begin(&pages, &eve).await);
    }
    assert!(is_kept(&pages, &ann, &hers).await, "300 lists of somebody else do no harm");
    assert!(
        is_kept(&pages, &eve, &tokens[299]).await && is_kept(&pages, &eve, &tokens[300 - OF_ONE.lists]).await
    );
    let why = next(&pages, asked(&eve, None), &tokens[299 - OF_ONE.lists]).await.err().unwrap();
    assert!(why.contains("more lists than are kept for one caller"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn of_too_many_lists_in_all_those_go_whose_caller_has_the_most() {
    let (pages, ann) = (Pages::default(), mk_account("ann"));
    let hers = begin(&pages, &ann).await;
    let crowd: Vec<Account> = (0..40).map(|n| mk_account(&format!("user-{n}"))).collect();
    for account in &crowd {
        for _ in 0..OF_ONE.lists {
            begin(&pages, account).await;
        }
    }
    assert_eq!(pages.lists.lock().unwrap().pinned.len(), IN_ALL.lists);
    assert!(is_kept(&pages, &ann, &hers).await, "though it was read from the longest ago");
}

#[tokio::test(start_paused = true)]
async fn lists_do_not_keep_more_of_what_was_replaced_than_there_is_room_for() {
    let (pages, ann) = (Pages::default(), mk_account("ann"));
    let [pods, nodes] = [(); 2].map(|()| Arc::new(Replaced::default()));
    let begin = async |replaced| {
        let asked = Asked { replaced, ..asked(&ann, Some(1)) };
        pages.first(asked, mk_selection(3), None).await.next.unwrap()
    };
    let half = usize::try_from(REPLACED / 2).unwrap();
    let oldest = begin(&pods).await;
    pods.add(half);
    let (older, of_nodes) = (begin(&pods).await, begin(&nodes).await);
    pods.add(half);
    nodes.add(7);
    let newest = begin(&pods).await;
    pages.sweep();
    let why = next(&pages, asked(&ann, Some(1)), &oldest).await.err().unwrap();
    assert!(why.contains("too many objects have changed"), "{why}");
    for token in [&older, &of_nodes, &newest] {
        assert!(is_kept(&pages, &ann, token).await, "what they keep is little enough");
    }
    pods.add(10 * half);
    pages.sweep();
    assert!(!is_kept(&pages, &ann, &older).await && !is_kept(&pages, &ann, &newest).await);
    assert!(is_kept(&pages, &ann, &of_nodes).await);
    drop(nodes);
    pages.sweep();
    let why = next(&pages, asked(&ann, Some(1)), &of_nodes).await.err().unwrap();
    assert!(why.contains("no longer kept in memory"), "a list alone would keep all objects: {why}");
}

#[tokio::test]
async fn a_page_of_many_objects_is_neither_counted_where_others_are_answered_nor_while_they_wait_for_a_lock()
{
    let (pages, ann) = (Pages::default(), mk_account("ann"));
    let token = pages.first(asked(&ann, Some(1)), mk_selection(10_000), None).await.next.unwrap();
    let token = Token::read(&token, "pods").unwrap();
    let mut long = Box::pin(pages.next(asked(&ann, Some(9_000)), &token));
    assert!((&mut long).now_or_never().is_none(), "it is done elsewhere");
    assert!(pages.lists.try_lock().is_ok(), "and others go on meanwhile");
    assert!(matches!(long.await, Next::Page(page) if page.to == 9_001 && page.remaining() == 999));
}

#[tokio::test(start_paused = true)]
async fn a_list_is_for_who_asked_and_refusals_do_not_end_it() {
    let (pages, ann, eve) = (Pages::default(), mk_account("ann"), mk_account("eve"));
    let token = begin(&pages, &ann).await;
    let other = Asked { question: "pods as eve", ..asked(&eve, None) };
    assert!(next(&pages, other, &token).await.err().unwrap().contains("what you may see"));
    assert!(is_kept(&pages, &ann, &token).await);
    assert_ne!(token, begin(&pages, &ann).await, "tokens are not guessed from one another");
    assert_eq!(Token::read(&token, "nodes").unwrap_err().code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_token_says_where_to_go_on_though_the_list_is_gone() {
    let (pages, ann) = (Pages::default(), mk_account("ann"));
    let token = Token::read(&begin(&pages, &ann).await, "pods").unwrap();
    assert_eq!(token.after().as_str(), "default/object-0");
    // Another process, with other objects.
    let (pages, rest) = (Pages::default(), mk_selection(5));
    let page = pages.first(asked(&ann, Some(2)), rest, Some(&token)).await;
    assert_eq!((page.total, &page.version), (6, &"7".into()), "it is followed from where it began");
    let page = next(&pages, asked(&ann, Some(2)), &page.next.unwrap()).await.unwrap();
    assert_eq!((page.from.at, page.to, page.remaining(), page.total), (2, 4, 1, 6));
}

#[test]
fn a_token_is_read_as_it_was_written_and_nothing_else_is_a_token() {
    for after in ["default/web.0-a", "system:node", "kube-system/é"] {
        let token = Token {
            id: 7,
            from: 3,
            version: "1.2".into(),
            query: "ab".into(),
            after: after.parse().unwrap(),
        };
        let text = token.to_string();
        let read = Token::parse(&text).unwrap();
        assert_eq!((read.id, read.from, read.after.as_str()), (7, 3, after));
        assert_eq!(read.to_string(), text);
        for end in 0..text.rfind('.').unwrap() {
            assert!(Token::parse(&text[..end]).is_none(), "cut at {end}");
        }
    }
    for odd in ["", ".", "....", "x.1.2.3.a", "7.x.2.3.a", "7.1.2.3.%ff", "7.1.2.3.a.b"] {
        assert!(Token::parse(odd).is_none(), "{odd}");
    }
}
