//! The peer with the allocator that a program gets by default.

fn main() -> anyhow::Result<()> {
    kube_rs_peer::run()
}
