import { Words } from './words';

export const spanish: Words = {
  language: 'es',
  gpu: 'GPU',
  panel: 'GPU',
  mine: 'Mis GPU',
  request: 'Pedir',
  queue: 'Cola',
  pool: 'Equipos',
  jobs: 'Trabajos',
  of: 'de',
  load: 'Carga',
  memory: 'Memoria',
  loading: 'Preguntando al broker…',

  keep: 'Conservar',
  release: 'Liberar',
  park: 'Aparcar',
  unpark: 'Recuperar',
  why: '¿Por qué?',
  leave: 'Dejar la cola',
  cancel: 'Cancelar',
  openPanel: 'Ver las GPU',
  requestGpu: 'Pedir una GPU',
  allowNotifications: 'Permitir avisos fuera de JupyterLab',
  keepHint: left => (left === null ? 'Conservarla' : `Conservarla (posible ${left} veces más)`),
  noKeepsLeft: 'Se conservó tantas veces como es posible; úsela, o libérela',
  releaseHint: 'Devolverla ahora',
  parkHint: 'Devolverla ahora y guardar su contenido en la memoria del equipo',
  actionsOf: name => `Qué hacer con la GPU de ${name}`,

  noBroker: 'sin broker',
  noGpu: 'sin GPU',
  notLent: 'GPU no gestionada',
  returnsIn: time => `vuelve en ${time}`,
  inQueue: (place, expected) => {
    const where = place === null ? 'en la cola' : `${place}.º en la cola`;
    return expected === null ? where : `${where} · ~${expected}`;
  },
  arriving: 'llegando',
  leaving: 'devolviéndose',
  parked: 'aparcada',
  verdicts: {
    active: 'activa',
    host_busy: 'ocupada en la CPU',
    waiting_user: 'le espera',
    idle: 'inactiva',
    never_used: 'aún sin usar',
    serving: 'sirviendo',
    suspect: 'se comporta raro',
    unknown: 'no visible'
  },
  unknownState: 'en un estado desconocido',

  nothingHeld: 'No tiene ninguna GPU.',
  giveBack: {
    empty: 'Se devuelve al instante: aún no tiene nada.',
    parked: 'Se devuelve aparcando su memoria en el equipo.',
    checkpointed: 'Se devuelve suspendiendo su proceso en la GPU.',
    restarted: 'Se devuelve guardando y reiniciando el kernel.',
    kept: 'Ahora no puede devolverse.'
  },
  keptFor: time => `conservada ${time} más`,
  endsIn: time => `suya ${time} más`,
  command: 'Orden',

  forNotebook: 'Para',
  noNotebook: 'Abra un cuaderno para pedir una GPU.',
  noKernel: 'El broker no conoce su kernel. Arránquelo o reinícielo para pedir una GPU.',
  holdsAlready: 'Este cuaderno ya tiene una GPU, o la espera.',
  what: 'Qué',
  count: 'Cuántas',
  until: 'Hasta',
  untilReleased: 'que la libere',
  leastMemory: 'Mínimo',
  byMemory: 'Por memoria',
  anyGpu: 'Cualquier GPU',
  freeOf: (free, all) => `${free} de ${all} libres`,
  freeNow: (free, all) => `${free} de ${all} libres: suya al instante.`,
  noneFree: waiting =>
    waiting === 0
      ? 'Ahora no hay libres; sería el primero de la cola.'
      : `Ahora no hay libres; ya esperan ${waiting}.`,
  lastExpected: time => `Se espera atender al último en unos ${time}.`,

  emptyQueue: 'Nadie espera.',
  myPlace: (place, all) => `${place}.º de ${all}`,
  expected: time => `en unos ${time}`,
  expectedUnknown: 'sin estimación',
  waited: time => `espera ${time}`,
  othersWait: count =>
    count === 1 ? 'Espera otra petición.' : `Esperan otras ${count} peticiones.`,
  noGpus: 'Aquí no hay ninguna GPU.',
  simulated: 'Estas GPU son simuladas.',
  slotStates: {
    free: 'libre',
    mine: 'suya',
    taken: 'ocupada',
    clearing: 'en comprobación',
    unusable: 'no utilizable'
  },
  gpuSummary: (free, all, used) => `${free} de ${all} libres, memoria en uso: ${used}`,
  noJobs: 'No hay trabajos por lotes. Envíe uno con `gpubroker submit -- orden`.',

  goesBackAt: (name, time) =>
    `La GPU de ${name} se devuelve a las ${time}: está inactiva y alguien la espera.`,
  gotGpu: name => `${name} ya tiene su GPU.`,
  titleMark: 'La GPU se devuelve'
};
