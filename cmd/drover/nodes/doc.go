// Package nodes has the commands about servers that run: node, claims, drain and recycle.
package nodes
