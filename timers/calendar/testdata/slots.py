#!/usr/bin/env python3
"""Writes the slots of named and of elapsed times around changes of the clock, as Python's zoneinfo knows the zones.

Usage: python3 slots.py > slots.txt

A line has zone, cron expression, the instant to look from, and the slots of the days that follow, all in UTC. Only zones and
years are used whose changes are long past. The first line says the version of the database of zones.
"""

import sys
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

UTC = timezone.utc
MINUTE = timedelta(minutes=1)

ZONES = """Europe/Berlin Europe/Dublin Europe/London Europe/Lisbon Europe/Moscow Europe/Istanbul America/New_York America/St_Johns
America/Sao_Paulo America/Santiago America/Asuncion America/Havana America/Caracas America/Nuuk America/Scoresbysund
Atlantic/Azores Africa/Casablanca Africa/Cairo Africa/Khartoum Antarctica/Troll Antarctica/Casey Asia/Kathmandu Asia/Gaza
Asia/Tehran Asia/Amman Asia/Pyongyang Asia/Kolkata Australia/Lord_Howe Australia/Adelaide Pacific/Chatham Pacific/Apia
Pacific/Kiritimati Pacific/Kwajalein Pacific/Norfolk""".split()
YEARS = range(2009, 2023)
EARLIER = {"Pacific/Kwajalein": range(1993, 1994), "Pacific/Kiritimati": range(1994, 1996), "Asia/Kathmandu": range(1985, 1987)}
NAMED = [(0, 0), (0, 30), (1, 15), (2, 0), (2, 30), (3, 0), (23, 45)]
ELAPSED = [("*/20 * * * *", lambda t: t.minute % 20 == 0), ("30 */2 * * *", lambda t: t.minute == 30 and t.hour % 2 == 0)]
DAYS = 3


def changes(zone, years):
    """Returns the instants at which the offset of a zone changes, by looking at each quarter of an hour."""
    at, end = datetime(years[0], 1, 1, tzinfo=UTC), datetime(years[-1] + 1, 1, 1, tzinfo=UTC)
    found, before = [], at.astimezone(zone).utcoffset()
    while at < end:
        day = at + timedelta(days=1)
        if day.astimezone(zone).utcoffset() != before or (at + timedelta(hours=12)).astimezone(zone).utcoffset() != before:
            for n in range(24 * 60):
                now = (at + n * MINUTE).astimezone(zone).utcoffset()
                if now != before:
                    found.append(at + n * MINUTE)
                    before = now
        before = day.astimezone(zone).utcoffset()
        at = day
    return found


def exists(day, zone):
    """Tells whether the clock shows any minute of a day."""
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    return any((noon + n * timedelta(minutes=15)).astimezone(zone).date() == day for n in range(-160, 160))


def named(day, hour, minute, zone):
    """Returns the instant of a named time: fold 0 is the first of two."""
    local = datetime(day.year, day.month, day.day, hour, minute)
    instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == local:
        return instant
    if not exists(day, zone):
        return None
    # In a gap fold 0 takes the offset before it, which leads to an instant after it. Back to the first one after the gap:
    while (instant - MINUTE).astimezone(zone).replace(tzinfo=None) > local:
        instant -= MINUTE
    return instant


def version():
    with open("/usr/share/zoneinfo/tzdata.zi", encoding="ascii") as f:
        return f.readline().split()[-1]


def main():
    print(f"# Written by slots.py with Python {sys.version.split()[0]} and tzdata {version()}. Zone, expression, from, slots.")
    for name in ZONES:
        zone = ZoneInfo(name)
        found = changes(zone, EARLIER.get(name, YEARS))
        for change in found[:3] + found[-3:] if len(found) > 6 else found:
            start = (change - timedelta(hours=36)).replace(minute=0)
            end = start + timedelta(days=DAYS)
            first = start.astimezone(zone).date() - timedelta(days=1)
            rows = []
            for hour, minute in NAMED:
                days = [first + timedelta(days=n) for n in range(DAYS + 4)]
                rows.append((f"{minute} {hour} * * *", sorted({t for d in days if (t := named(d, hour, minute, zone))})))
            for expression, matches in ELAPSED:
                near = [change + n * MINUTE for n in range(-150, 150)]
                if expression.startswith("*"):
                    rows.append((expression, [t for t in near if matches(t.astimezone(zone))]))
                else:
                    rows.append((expression, [t for n in range(DAYS * 24 * 60) if matches((t := start + n * MINUTE).astimezone(zone))]))
            for expression, slots in rows:
                begin, stop = (change - 150 * MINUTE, change + 150 * MINUTE) if expression.startswith("*") else (start, end)
                stamps = [t.strftime("%d%H%M") for t in slots if begin <= t < stop]
                print("\t".join([name, expression, begin.strftime("%Y-%m-%dT%H:%MZ"), " ".join(stamps)]))


if __name__ == "__main__":
    main()
