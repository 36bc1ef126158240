"""The dictionary: every column, word and key of `results.json`, with a title, a unit and one sentence.

`TERMS[name]` is the one place where a name is explained; tables, tooltips, the data dictionary and the report's
glossary all read it, so a word cannot mean two things. A unit of "" means the value has none (a name, a flag, a list).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """One explained name: `name` as it is written in tables and JSON, `title` for people, `unit`, one `sentence`."""

    name: str
    title: str
    unit: str
    sentence: str


def _read(group: str) -> dict[str, Term]:
    """Terms of one group: a line is `name | title | unit | sentence`."""
    rows = [[part.strip() for part in line.split("|")] for line in group.strip().splitlines()]
    return {row[0]: Term(*row) for row in rows}


WORDS = _read("""
request | Request | | One call that reached (or would have reached) the model; retries and streaming repeats are \
not requests.
prefix key | Prefix key | | Identity of a cacheable prefix: a hash of its exact bytes or tokens.
flat | Flat identity | | One prefix key per request; the whole prefix hits or misses.
blocks | Block identity | | A path of blocks, each identified by its chain: block i can hit only if all blocks \
before it hit.
chain | Chain identity | | A path of turn increments: each request extends the prompt of the request before it.
tier | Tier | | The cache under study, with a fixed budget in tokens.
tier mode | Tier mode | | What a hit means for the bill: mirror, absorb or engine.
mirror | Mirror | | The tier decides which prefixes stay cached at the provider: a hit is a provider read, any \
other cacheable token a provider write.
absorb | Absorb | | A hit is served locally and never reaches the provider.
engine | Engine | | You run the model yourself: there is no bill, a miss is prefill work.
hit | Hit | | A prefix that is found resident and alive in the tier.
miss cause | Miss cause | | Exactly one reason per missed token: cold, evicted, expired, lost, below_minimum, \
in_flight or oversize.
ceiling | Ceiling | | What an infinite cache would hit after rounding and TTL: no policy can do better.
optimum | Optimum | | The best any policy could do at this budget, knowing the future.
concentration | Concentration | | Share of requests, and of marginal reusable tokens, on the most used prefix keys.
rotation | Rotation | | How much of one day's most used keys are still among the most used the next day.
inter-turn gap | Inter-turn gap | seconds | Time between two requests of one chain, on one of two clocks that are \
never mixed.
start to start | Start to start | seconds | From the start of one request to the start of the next: what a TTL \
clock sees.
end to start | End to start | seconds | From the end of one answer to the start of the next request: think or tool time.
TTL | Time to live (TTL) | seconds | How long an entry may stay unused before it expires, counted from the start of \
the last request that wrote or read it.
retention | Retention | seconds | How long a provider keeps what it wrote: short or long, each at its own price of a \
write.
keep-alive | Keep-alive | | A call made only to read a prefix before it expires, so that it is kept.
redrawn log | Redrawn log | | The same sessions drawn again by chance, some twice and some not at all (bootstrap): how \
far a figure moves is its interval.
pt | pt | | Percentage points: the difference of two shares.
key cut | Key cut | | Where a path of blocks is cut to name one key per request; always stated beside a \
concentration figure.
reused key | Reused key | | A key that at least two requests share.
neutral | Neutral assumption | | TTL as published, nothing lost, writes readable at once.
pessimistic | Pessimistic assumption | | TTL 20 % shorter, 5 % of reads lost, writes readable after 5 seconds.
observed | Observed | | What the provider reported in the log itself.
cold window | All requests | | Counts over every request, from an empty cache.
warm window | After warm-up | | Counts after the first day, or over the second half of a shorter log.
derived | Derived | | Computed by the kit from other columns, not reported by the log.
one-shot | One-shot key | | A key that only one request has.
scan | Scan | | An hour in which a large share of tokens sits in first-seen keys that never come back.
LIST | List price | | A published price.
CONTRACT | Contract price | | A price you entered from your own contract.
INVOICED | Invoiced price | | A price derived from an invoice.
""")

COLUMNS = _read("""
request_id | Request number | | Dense number from 0 in order of time; ties keep the order of the file.
ts | Start | UTC time | When the request started.
ts_end | End | UTC time | When its answer was complete.
session_id | Session | | The conversation or agent run the request belongs to.
chain_id | Chain | | The message chain a prefix grows along: the session, and the agent within it.
session_type | Session type | | Kind of session: chat, agent, single, or the log's own word.
trigger | Trigger | | What caused the request: a person, a tool result, or something else.
turn | Turn | | Number of the request within its chain, from 1.
provider | Provider | | Who served the model.
model | Model | | Model name as the log has it; caches are never shared across models.
cache_scope | Cache scope | | Workspace, region or salt that caches are never shared across.
replica | Replica | | Which engine served the request.
owner | Owner | | Team, application or key that the cost belongs to.
priority | Priority | | Whom an engine with priorities evicts last: 0 to 100, the lowest goes first.
retention_seconds | Retention | seconds | How long that priority lasts before it falls back to the usual one.
prefix_key | Prefix key | | Identity of the cacheable prefix of a flat log.
prefix_tokens | Prefix tokens | tokens | Length of that prefix.
input_tokens | Input tokens | tokens | The whole prompt: uncached, read and written tokens together.
uncached_tokens | Uncached tokens | tokens | Input tokens neither read from nor written to a cache.
read_tokens | Read tokens | tokens | Input tokens read from a cache.
write_tokens | Written tokens, short | tokens | Input tokens written to a cache with the short time to live.
write_long_tokens | Written tokens, long | tokens | Input tokens written to a cache with the long time to live.
output_tokens | Output tokens | tokens | Tokens the model produced.
source_id | Own id | | The id the log itself gives the request.
file | File | | File the row came from.
line | Line | | Line (or record) of that file, from 1.
node_id | Node number | | Dense number of one piece of a prefix path; parents come first.
parent_id | Parent | | The piece before this one; none for the first.
tokens | Tokens | tokens | Length of the piece as the log has it, not rounded.
depth | Depth | | Number of pieces before this one in its path.
token_type | Token type | | What the piece holds: system, tools, user, assistant, thinking, tool_result and so on.
reason | Reason | | Why a row was not used.
excerpt | Excerpt | | The value that was refused, never prompt text.
fact | Fact | | Name of one measured property of the log.
value | Value | | The fact as JSON.
column_name | Column | | A column of the request table.
source_column | Column in the log | | The column or field it was taken from.
rows_with_value | Rows with a value | rows | Kept rows in which the column is known.
requests | Requests | requests | Number of requests.
sessions | Sessions | sessions | Number of sessions.
first_seen | First seen | UTC time | Start of the first request with this key.
last_seen | Last seen | UTC time | Start of the last request with this key.
days_seen | Days seen | days | Calendar days (UTC) on which the key occurs.
start_to_start_seconds | Gap, start to start | seconds | From the previous start in the chain to this start.
end_to_start_seconds | Gap, end to start | seconds | From the previous end in the chain to this start.
path_keys | Path keys | | Keys of the blocks or pieces of a prompt, first to last.
path_tokens | Path tokens | tokens | Lengths of those pieces, in the same order.
path_types | Path types | | Token types of those pieces, in the same order.
parent_request_id | Parent request | | Own id of the request whose prompt this one extends.
block_tokens | Block | tokens | Size of a block; a partial block at the end of a prompt is never cached.
start_s | Start, relative | seconds | Start counted from the first request of a log without a clock.
duration_s | Duration | seconds | From the start of the request to the end of its answer.
attempt | Attempt | | Number of this try of the request, from 1; later tries are not requests.
preempted | Preempted | | The engine stopped this request and took it up again; the second part is no request.
""")

RESULTS = _read("""
schema | Schema | | Version of the layout of results.json.
kit_version | Kit version | | Version of the kit that made the file.
log | Log | | What was read.
parameters | Parameters | | Every parameter of the run.
settings | Settings | | What the parameters came to after defaults and the log's own facts.
bounds | Bounds | | The ceiling and the optimum, part of every comparison.
replay | Replay | | One row per policy, budget, assumption and window.
decision | Decision | | The rule that fired and the trail of all rules.
money | Money | | Prices used and their origin.
footer | Footer | | How to make this file again.
sha256 | SHA-256 | | Fingerprint of the log's bytes, files in order of name.
format | Format | | The recognised layout.
confidence | Confidence | ratio | How sure the recognition is, 0 to 1.
rows | Rows | rows | Records read that claim to be a request.
kept | Kept | rows | Records that became requests.
rejected | Rejected | rows | Records not used, by reason.
start | Start | UTC time | Start of the first request.
end | End | UTC time | Start of the last request.
days | Days | days | Calendar days (UTC) the log touches.
chains | Chains | chains | Number of message chains.
keys | Keys | keys | Number of distinct prefix pieces.
missing | Missing | | Columns that this log does not have.
cannot_tell | Cannot tell | | Questions this log cannot answer, with the reason.
identity | Identity | | How prefixes are known: flat, blocks, chain or not at all.
top_fraction | Top fraction | ratio | Part of the keys counted as the top.
request_share | Share of requests | ratio | Part of all requests that carry a top key.
token_share | Share of tokens | ratio | Part of the marginal reusable tokens that top keys carry.
curve | Curve | | Cumulative shares from the most used key down.
top_keys | Top keys | | The most used keys.
day_overlap | Day overlap | ratio | Part of a day's top keys that were top the day before.
median | Median | | Middle value.
value_rank | Value rank | | Whether long prefixes are also the valuable ones.
spearman_length_value | Rank correlation, length and value | | Spearman correlation of length with length times count.
spearman_length_count | Rank correlation, length and count | | Spearman correlation of length with count.
longest_tenth | Longest tenth | | The longest tenth of the keys.
inter_turn | Inter-turn gaps | | Gaps by session type, trigger and clock.
clock | Clock | | Which of the two gaps: start_to_start or end_to_start.
n | Number | | Number of observations.
censored | Censored | | Last turns whose next gap the log does not show.
mu | Mu | | Mean of the logarithm of the gap in seconds.
sigma | Sigma | | Standard deviation of the logarithm of the gap.
median_seconds | Median gap | seconds | Median of the observed gaps.
fitted_median_seconds | Fitted median gap | seconds | exp(mu): the median of the fitted log-normal.
ks | Kolmogorov-Smirnov distance | | Largest distance between the fitted and the observed distribution.
aic | Akaike criterion | | Fit quality by distribution; smaller is better.
p_within | Probability within | ratio | Part of gaps shorter than the stated seconds.
optimal | Optimum | | Best possible hits at each budget.
capacity_tokens | Budget | tokens | Size of the tier.
capacity_label | Budget name | | The budget relative to the actual one: half, actual or double.
hits | Hit requests | requests | Requests that found at least part of their prefix.
hit_tokens | Hit tokens | tokens | Input tokens found resident and alive.
hit_token_ratio | Hit-token ratio | ratio | Hit tokens divided by all input tokens.
request_hit_rate | Request hit rate | ratio | Hit requests divided by all requests.
missed | Missed tokens | tokens | Missed tokens by cause.
cold | Cold | tokens | Missed because never seen before.
evicted | Evicted | tokens | Missed because pushed out for room.
expired | Expired | tokens | Missed because unused for longer than the time to live.
lost | Lost | tokens | Missed because the provider dropped the entry.
below_minimum | Below minimum | tokens | Missed because shorter than a block or the provider's minimum.
in_flight | In flight | tokens | Missed because written but not yet readable.
oversize | Oversize | tokens | Missed because larger than the tier.
policy | Policy | | The eviction policy.
assumption | Assumption | | neutral, pessimistic or observed.
window | Window | | cold (all requests) or warm (after warm-up).
ttl_seconds | Time to live | seconds | How long an unused entry lives; none means for ever.
minimum_tokens | Minimum | tokens | Shortest prefix that the provider caches.
evictions | Evictions | entries | Entries pushed out for room.
evicted_unused_tokens | Left unread | tokens | Tokens that left the cache (pushed out, expired) without ever being read.
cost | Cost | money | Bill of the input side.
cost_per_request | Cost per request | money | Bill of the input side divided by all requests.
m_raw | Billed tokens per hit request | tokens | All billed input tokens divided by the requests that found their \
prefix; none when nobody did.
m_eq | Billed tokens per hit request, price-weighted | input-token equivalents | All billed input tokens, each class \
weighted by its price against plain input, divided by the requests that found their prefix.
interval | Interval | | 95 % paired bootstrap interval.
low | Low | | Lower end of the interval.
high | High | | Upper end of the interval.
reported | Reported | | Token classes as the provider reported them.
simulated | Simulated | | The same classes as the replay has them.
ttl_observed | Observed TTL | | Time to live read off the log, where it can be told.
write_class | Write class | | Short or long time to live.
priced_token_share | Priced share | ratio | Part of the tokens for which a price was found.
currency | Currency | | Currency of the money figures.
rule | Rule | | Number of the decision rule.
sentence | Sentence | | The verdict in words, computed from the trail.
accepted | Accepted | | Whether the recommended change is accepted.
provisional | Provisional | | The verdict if rule 0 were waived.
trail | Trail | | Every rule with its measured value, threshold, margin and outcome.
question | Question | | What a rule asks.
measured | Measured | | The value a rule looked at.
threshold | Threshold | | The value it is compared with.
margin | Margin | | Distance between the two.
outcome | Outcome | | fired, did not fire, not consulted or cannot tell.
saving_per_month | Saving per month | money | Difference in cost scaled from the observed span to 365/12 days.
resident_token_seconds | Resident token-seconds | token-seconds | Tokens held, summed over time.
""")

TERMS: dict[str, Term] = {**WORDS, **COLUMNS, **RESULTS}


def term(name: str) -> Term:
    """The explained name; raises KeyError with the name when the dictionary lacks it."""
    return TERMS[name]


def title(name: str) -> str:
    """Title of a column for people, with its unit in brackets where it has one, for example `Input tokens [tokens]`."""
    found = TERMS[name]
    return f"{found.title} [{found.unit}]" if found.unit else found.title
