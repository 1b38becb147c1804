/* Peterson's mutual exclusion for four processes: the steps of BEEM's peterson.4, one each. */
#define N 4

byte pos[N];
byte step[N];

active [N] proctype P() {
	byte j, k;
NCS:	j = 1;
wait:	if
	:: d_step { j < N -> pos[_pid] = j }
	:: j == N -> goto CS
	fi;
q2:	d_step { step[j - 1] = _pid; k = 0 };
q3:	if
	:: d_step { k < N && (k == _pid || pos[k] < j) -> k = k + 1 }; goto q3
	:: d_step { step[j - 1] != _pid || k == N -> j = j + 1 }; goto wait
	fi;
CS:	pos[_pid] = 0;
	goto NCS
}
