// Package namespaces has the commands about a namespace and what is kept in it: namespace,
// retention, type, tasklist and lock.
package namespaces
