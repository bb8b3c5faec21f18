int stand_in;
