divert(-1)

define(`true', 1)
define(`false', 0)
define(`bool', `byte')

Loops. The bounds may be expressions. The body sees the variable as a macro.
define(`forloop', `_forloop(`$1', eval($2), eval($3), `$4', `')')
define(`myloop', `_forloop(`$1', eval($2), eval($3), `$4', ` $5 ')')
define(`_forloop', `ifelse(eval($2 > $3), 1, `', `pushdef(`$1', $2)$4`'popdef(`$1')ifelse($2, $3, `', `$5`'_forloop(`$1', incr($2), $3, `$4', `$5')')')')
define(`forallx', `forloop(`x', 0, N-1, `$1')')

Queues and stacks: an array of bytes, how many are in use, and how many there may be.
define(`queue', `byte $1[$2];
byte $1_act = 0;
define(`$1_size', `$2')')
define(`stack', defn(`queue'))
define(`full', `$1_act == $1_size')
define(`empty', `$1_act == 0')
define(`top', `$1[$1_act-1]')
define(`front', `$1[0]')
define(`push', `$1[$1_act] = $2, $1_act = $1_act+1')
define(`pop', `$1[$1_act-1] = 0, $1_act = $1_act-1')
define(`pop_front', `_forloop(`_k', 0, eval($1_size-2), `$1[_k] = $1[eval(_k+1)], ', `')$1[eval($1_size-1)] = 0, $1_act = $1_act-1')

Channels with a process in between, which is kept back until the word system.
define(`_channel', `channel $1_in, $1_out;
define(`$1!', `$1_in!')define(`$1?', `$1_out?')divert(1)
process channel_$1 {
$2
}
divert`'')
define(`async_channel', `_channel(`$1', `byte v;
state ready, carrying;
init ready;
trans
 ready -> carrying { sync $1_in?v; },
 carrying -> ready { sync $1_out!v; };')')
define(`loosy_channel', `_channel(`$1', `byte v;
state ready, carrying;
init ready;
trans
 ready -> carrying { sync $1_in?v; },
 carrying -> ready { },
 carrying -> ready { sync $1_out!v; };')')
define(`bounded_loosy_channel', `_channel(`$1', `byte v, lost = 0;
state ready, carrying;
init ready;
trans
 ready -> carrying { sync $1_in?v; },
 carrying -> ready { guard lost < $2; effect lost = lost+1; },
 carrying -> ready { sync $1_out!v; effect lost = 0; };')')
define(`buffer_channel', `_channel(`$1', `queue(`buf', `$2')
state q;
init q;
trans
 q -> q { guard not(full(`buf')); sync $1_in?buf[buf_act]; effect buf_act = buf_act+1; },
 q -> q { guard not(empty(`buf')); sync $1_out!buf[0]; effect pop_front(`buf'); };')')

define(`system', `undivert(1)`system'')
divert(0)dnl
