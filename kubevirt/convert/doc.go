// Package convert turns typed objects of Kubernetes and KubeVirt into godwit's values.
//
// [Fleet] reads a cluster with the reader of dumps, so that a live cluster and a dump of it give
// the same answer.
package convert
