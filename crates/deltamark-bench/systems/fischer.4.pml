/* Fischer's timed mutual exclusion for seven processes: the steps of BEEM's fischer.4, one each. */
#define N 7
#define NEVER 255
#define tick(p) t[p] = (t[p] == NEVER -> NEVER : t[p] - 1)

byte id;
byte t[N] = NEVER;

active [N] proctype P() {
NCS:	if :: d_step { id == 0 -> t[_pid] = 2 } fi;
try:	d_step { t[_pid] = 3; id = _pid + 1 };
wait:	if
	:: d_step { t[_pid] == 0 -> t[_pid] = NEVER }; goto wait
	:: t[_pid] == NEVER && id == _pid + 1
	:: id != _pid + 1 && t[_pid] == NEVER -> goto NCS
	fi;
CS:	id = 0;
	goto NCS
}

active proctype Timer() {
	do
	:: d_step {
		t[0] != 0 && t[1] != 0 && t[2] != 0 && t[3] != 0 && t[4] != 0 && t[5] != 0 && t[6] != 0 ->
		tick(0); tick(1); tick(2); tick(3); tick(4); tick(5); tick(6)
	}
	od
}
