// Package schedules has the commands about times: schedule, always-on and once.
package schedules
