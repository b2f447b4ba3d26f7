// Package operator carries out in a cluster what package evacuate decides.
//
// One [Reconciler] looks at the whole cluster, as far as something is asked of it, decides and acts.
// There is one request in its queue: limits hold for the cluster, so decisions about two nodes are
// one decision. It polls nothing, and writes nothing while nothing changes.
package operator
