/* Lamport's fast mutual exclusion for four processes: the steps of BEEM's lamport.5, one each. */
#define N 4
#define NOBODY 255

byte b[N];
byte x = NOBODY, y = NOBODY;

active [N] proctype P() {
	byte j;
NCS:	b[_pid] = 1;
q1:	x = _pid;
q2:	if
	:: d_step { y != NOBODY -> b[_pid] = 0 }
	:: y == NOBODY -> goto p
	fi;
q22:	y == NOBODY;
	goto NCS;
p:	y = _pid;
q3:	if
	:: x == _pid -> goto CS
	:: d_step { x != _pid -> b[_pid] = 0; j = 0 }
	fi;
q4:	if
	:: d_step { j < N && b[j] == 0 -> j = j + 1 }; goto q4
	:: j == N
	fi;
q5:	if
	:: y == _pid
	:: y == NOBODY -> goto NCS
	fi;
CS:	y = NOBODY;
e1:	b[_pid] = 0;
	goto NCS
}
