/* Alur and Taubenfeld's timed mutual exclusion for four processes: the steps of BEEM's at.3, one each. */
#define N 4
#define NEVER 255
#define NOBODY 255
#define tick(p) t[p] = (t[p] == NEVER -> NEVER : t[p] - 1)

byte x, y = NOBODY;
byte z;
byte t[N] = NEVER;

active [N] proctype P() {
NCS:	if :: d_step { x = _pid; t[_pid] = NEVER } fi;
p3:	d_step { y == NOBODY -> t[_pid] = 2 };
p4:	d_step { y = _pid; t[_pid] = 2 };
p5:	if
	:: d_step { x == _pid -> t[_pid] = 2 }; goto p9
	:: d_step { x != _pid -> t[_pid] = 4 }
	fi;
p6:	d_step { t[_pid] == 0 -> t[_pid] = 2 };
p7:	if
	:: d_step { y != _pid -> t[_pid] = 2 }; goto NCS
	:: d_step { y == _pid -> t[_pid] = NEVER }
	fi;
p8:	z == 0;
	goto CS;
p9:	if :: d_step { z = 1; t[_pid] = NEVER } fi;
CS:	if :: d_step { z = 0; t[_pid] = 2 } fi;
p12:	if
	:: d_step { y != _pid -> t[_pid] = NEVER }; goto NCS
	:: d_step { y == _pid -> t[_pid] = 2 }
	fi;
p13:	d_step { y = NOBODY; t[_pid] = NEVER };
	goto NCS
}

active proctype Timer() {
	do
	:: d_step {
		t[0] != 0 && t[1] != 0 && t[2] != 0 && t[3] != 0 ->
		tick(0); tick(1); tick(2); tick(3)
	}
	od
}
