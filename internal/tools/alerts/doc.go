// Package alerts has the alerts and the dashboard of the folder deploy read by Prometheus' own
// parser, and the alerts evaluated by its engine: each fires on what it is for, and none on a
// system that is well.
//
// It is a module of its own, so that Prometheus never enters that of Drover; "make alerts" runs it.
// "make test" does not, since it takes a minute to build: what it checks of names there is in
// ops/metrics.
package alerts
