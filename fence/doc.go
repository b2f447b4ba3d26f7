// Package fence cuts hosts off by running fence agents: the programs of Debian's and
// Red Hat's fence-agents packages, or any other that speaks like them.
//
//	$ printf 'action=off\nip=10.0.0.1\npassword=…\n' | fence_ipmilan; echo $?
//
// An agent reads options as lines of its standard input. Of "off" and "monitor" it exits
// with 0 when all is well; of "status" with 0 when the host is on and with 2 when it is
// off; with anything else when it does not know.
// Source: ClusterLabs fence-agents doc/FenceAgentAPI.md.
//
// That an agent says that it has switched a host off proves nothing. A host counts as off
// when "off" has succeeded and "status" says so afterwards. Passwords go to the agents'
// standard input only, and are cut out of what they print.
//
// A caller calls [Fence.Check] at the start, to learn of wrong passwords before they are
// needed, and [Fence.Close] at the end.
package fence
