// Package calendar evaluates the times of a schedule.
package calendar
