//! The tests of this package make an informer of every kind that Kubernetes has built in. That is a hundred times the
//! code of one, so they are a package of their own, which is built without optimisation.
